export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  for (; value >= 1_000 && unit < units.length - 1; unit++) value /= 1_024;
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

export const count = (value: number) => value.toLocaleString("en");

export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (value >= 1_000) return count(Math.round(value));
  return value >= 100 || (value >= 10 && Number.isInteger(value)) ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${count(Math.floor(seconds / 86_400))} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

export function ago(ms: number): string {
  if (ms < 1_500) return "now";
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${count(Math.floor(seconds / 86_400))} d ago`;
}

export function clockTime(ms: number, hasSeconds = true): string {
  const date = new Date(ms);
  const parts = [date.getHours(), date.getMinutes(), ...(hasSeconds ? [date.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

export const shortId = (id: string) => (id.length > 18 ? `${id.slice(0, 11)}…${id.slice(-4)}` : id);

export function Icon({ size }: { size: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M9 10h14M9 16h14M9 22h8" />
    </svg>
  );
}

export function Tabs({ name, tabs, current }: { name: string; tabs: [part: string, label: string, href: string][]; current: string }) {
  return (
    <nav class="tabs" aria-label={name}>
      {tabs.map(([part, label, href]) => (
        <a key={part} href={href} aria-current={part === current ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

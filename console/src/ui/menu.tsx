import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface MenuItem {
  label: string;
  isDangerous?: boolean;
  act: () => void;
}

/** A button that opens a menu. The arrow keys, Home and End move the focus in the menu. Escape closes the menu. */
export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const itemsShown = () => [...root.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
  /** Index of the item to focus when the menu opens. -1 means the last item. */
  const start = useRef(0);

  useLayoutEffect(() => {
    if (isOpen) itemsShown().at(start.current)?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return;
    const closeOutside = ({ target }: Event) => {
      if (!root.current!.contains(target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", closeOutside);
    addEventListener("focusin", closeOutside);
    return () => {
      removeEventListener("pointerdown", closeOutside);
      removeEventListener("focusin", closeOutside);
    };
  }, [isOpen]);

  const openAt = (index: number) => {
    start.current = index;
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    button.current!.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { key } = event;
    if (isOpen && key === "Tab") return setOpen(false);
    if (isOpen && key === "Escape") close();
    else if (!isOpen && key === "ArrowDown") openAt(0);
    else if (!isOpen && key === "ArrowUp") openAt(-1);
    else if (isOpen && /^(ArrowDown|ArrowUp|Home|End)$/.test(key)) {
      const menuItems = itemsShown();
      const index = menuItems.indexOf(document.activeElement as HTMLElement);
      const next = { ArrowDown: (index + 1) % menuItems.length, ArrowUp: index <= 0 ? -1 : index - 1, Home: 0, End: -1 }[key]!;
      menuItems.at(next)?.focus();
    } else {
      // disables page shortcuts while the menu is open
      if (isOpen) event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu-root" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        ref={button}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => (isOpen ? close() : openAt(0))}
      >
        {label} <span aria-hidden="true">▾</span>
      </button>
      {isOpen && (
        <div class="menu-items" id={id} role="menu" aria-label={label}>
          {items.map(({ label, isDangerous, act }) => (
            <button
              key={label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={isDangerous ? "danger" : ""}
              onClick={() => {
                // closes the menu first, so that a dialog that `act` opens can return the focus to the button
                close();
                act();
              }}
            >
              {label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

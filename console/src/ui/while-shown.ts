import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Calls `act` when an element comes into view. Aborts `signal` when the element leaves the view or `inputs` change. */
export function useWhileShown(ref: RefObject<Element | null>, act: (signal: AbortSignal) => void, inputs: unknown[]): void {
  useEffect(() => {
    let controller: AbortController | undefined;
    const observer = new IntersectionObserver((entries) => {
      const isShown = entries.at(-1)!.isIntersecting;
      if (isShown === (controller !== undefined)) return;
      controller?.abort();
      controller = isShown ? new AbortController() : undefined;
      if (controller) act(controller.signal);
    });
    observer.observe(ref.current!);
    return () => {
      observer.disconnect();
      controller?.abort();
    };
  }, inputs);
}

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

/** Side length of a compared block in pixels. About a line's height, so that any font draws into the same blocks. */
const BLOCK = 16;
/** Left edge of the compared area, in pixels. Excludes the menu, which is the same on all pages. */
const LEFT = 192;
/** A block is inked if its mean difference from the background exceeds this value, on a scale from 0 to 255. */
const INKED = 3;

/** Returns the share of inked blocks that are inked in only one of two pictures. Returns 1 if their sizes differ. */
export async function differenceOf(page: Page, ...paths: [string, string]): Promise<number> {
  const pictures = paths.map((path) => readFileSync(path).toString("base64"));
  return page.evaluate(
    async ([pictures, block, left, inked]) => {
      const read = async (picture: string) => {
        const image = new Image();
        image.src = `data:image/png;base64,${picture}`;
        await image.decode();
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const inkOf = ({ data, width, height }: ImageData) => {
        const brightness = (x: number, y: number) => {
          const at = 4 * (y * width + x);
          return (data[at]! + data[at + 1]! + data[at + 2]!) / 3;
        };
        const background = brightness(width - 1, height - 1);
        const blocks: boolean[] = [];
        for (let top = 0; top + block <= height; top += block)
          for (let start = left; start + block <= width; start += block) {
            let sum = 0;
            for (let y = top; y < top + block; y++) for (let x = start; x < start + block; x++) sum += Math.abs(brightness(x, y) - background);
            blocks.push(sum / block ** 2 > inked);
          }
        return blocks;
      };
      const [one, other] = await Promise.all(pictures.map(read));
      if (one!.width !== other!.width || one!.height !== other!.height) return 1;
      const [a, b] = [inkOf(one!), inkOf(other!)];
      const either = a.filter((is, i) => is || b[i]).length;
      return a.filter((is, i) => is !== b[i]).length / Math.max(1, either);
    },
    [pictures, BLOCK, LEFT, INKED] as const,
  );
}

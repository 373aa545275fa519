/** Throws for members that are undefined, such as `owner` from an unset variable: without it, a call concerns all owners. */
export function checkDefined(options: object, ...names: string[]): void {
  for (const name of names) {
    if (name in options && (options as { [name: string]: unknown })[name] === undefined) {
      throw new TypeError(`\`${name}\` is undefined: leave it out, or pass a value`);
    }
  }
}

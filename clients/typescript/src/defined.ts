/**
 * Refuses members that the caller names and leaves undefined. Without `signedId` or `owner`, a call is about another thread or about all
 * owners, which is not what a caller wants whose variable is not set.
 */
export function checkDefined(options: object, ...names: string[]): void {
  for (const name of names) {
    if (name in options && (options as { [name: string]: unknown })[name] === undefined) {
      throw new TypeError(`\`${name}\` is undefined: leave it out, or pass a value`);
    }
  }
}

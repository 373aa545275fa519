/** Returns the members that are not undefined. */
export const definedEntries = <T>(object: { [name: string]: T }): [name: string, value: T & ({} | null)][] =>
  Object.entries(object).filter((entry): entry is [string, T & ({} | null)] => entry[1] !== undefined);

/** Throws if an option is present but undefined. An undefined `owner`, for example, would select all owners. */
export function checkDefined(options: object, ...names: string[]): void {
  for (const name of names) {
    if (name in options && (options as { [name: string]: unknown })[name] === undefined) {
      throw new TypeError(`\`${name}\` is undefined: leave it out, or pass a value`);
    }
  }
}

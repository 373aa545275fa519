const camelName = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Renames the members of an API object to camelCase. Does not change their values, such as nested metadata. */
export function camel<T>(object: object): T {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camelName(name), value])) as T;
}

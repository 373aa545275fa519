const camelName = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** An object of the server with its own names in camelCase. Values, such as metadata, stay as they are. */
export function camel<T>(object: object): T {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camelName(name), value])) as T;
}

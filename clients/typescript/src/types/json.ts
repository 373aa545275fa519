/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/** A JSON parser and serializer, for applications that need exact numbers. */
export interface JsonFormat {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

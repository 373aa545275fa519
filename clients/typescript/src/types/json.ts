export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/** A JSON parser and serializer. `JSON` rounds large numbers, so pass a different format to keep numbers exact. */
export interface JsonFormat {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

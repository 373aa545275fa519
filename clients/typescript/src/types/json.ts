export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/** A JSON parser and serializer. Pass your own to keep numbers exact. */
export interface JsonFormat {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

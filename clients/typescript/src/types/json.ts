/** A value that JSON can express. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/** A reader and a writer of JSON, for applications that need exact numbers. */
export interface JsonFormat {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

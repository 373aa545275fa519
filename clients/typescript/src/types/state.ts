/** Default type of a state. Allows any key and any value. */
export type AnyState = Record<string, any>;

export type Key<S> = Extract<keyof S, string>;

/** Type of a key's value in a write. */
export type Value<S, K extends keyof S> = Exclude<S[K], undefined>;

export type Element<S, K extends keyof S> = NonNullable<S[K]> extends readonly (infer E)[] ? E : never;

export type ArrayKey<S> = {
  [K in Key<S>]-?: NonNullable<S[K]> extends readonly unknown[] ? K : never;
}[Key<S>];

export type CounterKey<S> = {
  [K in Key<S>]-?: NonNullable<S[K]> extends number | bigint ? K : never;
}[Key<S>];

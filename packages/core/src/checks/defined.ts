// Optional fields that may be missing but not undefined (`exactOptionalPropertyTypes`).

type OptionalKeys<T> = { [K in keyof T]: undefined extends T[K] ? K : never }[keyof T]

export type Defined<T> = Omit<T, OptionalKeys<T>> & { [K in OptionalKeys<T>]?: Exclude<T[K], undefined> }

/**
 * The object without the fields that are undefined.
 *
 * @example { name, ...defined({ title: options.title, limit }) }
 */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

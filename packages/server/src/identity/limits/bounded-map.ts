/** A map that drops its least recently used entries. */
export interface BoundedMap<T> {
  get(name: string): T | undefined
  set(name: string, value: T): void
  delete(name: string): void
  readonly size: number
}

export function boundedMap<T>(max: number): BoundedMap<T> {
  const map = new Map<string, T>()
  return {
    get(name) {
      const value = map.get(name)
      if (value === undefined) return undefined
      map.delete(name)
      map.set(name, value)
      return value
    },
    set(name, value) {
      map.delete(name)
      map.set(name, value)
      if (map.size > max) map.delete(map.keys().next().value!)
    },
    delete: (name) => void map.delete(name),
    get size() {
      return map.size
    },
  }
}

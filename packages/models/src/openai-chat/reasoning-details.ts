// OpenRouter's `reasoning_details`: entries that are sent back, unchanged and in order, to the model that wrote them.
// https://openrouter.ai/docs/guides/best-practices/reasoning-tokens

type Detail = Readonly<Record<string, unknown>>

export interface ReasoningDetailsReader {
  add(fragment: Detail): void
  /** All entries as the text of a signature; undefined when there are none. */
  text(): string | undefined
}

/** Fields that are streamed in pieces. */
const PIECES = ['text', 'summary']

/**
 * Assembles entries from fragments: a fragment continues the entry before it when type, index and id are the same.
 */
export function reasoningDetailsReader(): ReasoningDetailsReader {
  const entries: Record<string, unknown>[] = []
  return {
    add(fragment) {
      const last = entries.at(-1)
      if (last === undefined || !isSameEntry(last, fragment)) return void entries.push({ ...fragment })
      for (const [name, value] of Object.entries(fragment)) {
        if (value === null || value === undefined) continue
        const before = last[name]
        last[name] = PIECES.includes(name) && typeof before === 'string' ? before + String(value) : value
      }
    },
    text: () => (entries.length === 0 ? undefined : JSON.stringify({ reasoning_details: entries })),
  }
}

const isSameEntry = (entry: Detail, fragment: Detail): boolean =>
  entry.type === fragment.type &&
  entry.index === fragment.index &&
  (entry.id ?? fragment.id ?? null) === (fragment.id ?? entry.id ?? null) &&
  // Encrypted reasoning arrives whole, and a signature closes an entry.
  (entry.data === undefined || fragment.data === undefined) &&
  (typeof entry.signature !== 'string' || entry.signature === '')

/** The entries of a signature; undefined for a signature from elsewhere. */
export function readReasoningDetails(signature: string | undefined): readonly unknown[] | undefined {
  if (signature?.startsWith('{"reasoning_details":') !== true) return undefined
  try {
    const { reasoning_details: entries } = JSON.parse(signature) as { readonly reasoning_details?: unknown }
    return Array.isArray(entries) ? entries : undefined
  } catch {
    return undefined
  }
}

import { clippedName } from '@oxbow/core/internal'

// Assembles tool calls from their fragments. Providers disagree on what identifies a fragment's call, so the rules are:
// a known id continues its call; a new id with a name opens one; without an id the index decides, and without an index
// the place in the frame. Argument text is kept unchanged; nothing is repaired.

/** One element of `delta.tool_calls`, as far as it is well-formed. */
export interface CallFragment {
  readonly id?: unknown
  readonly index?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null
}

export interface OpenCall {
  readonly index: number | undefined
  id: string | undefined
  tool: string
  readonly parts: string[]
  readonly objectEnd: ObjectEnd
  /** The index among the reply's blocks, undefined until the call has been announced. */
  block: number | undefined
}

export interface CallAssembler {
  readonly calls: readonly OpenCall[]
  /** True when every call has its whole arguments; a call without any is complete. */
  readonly whole: boolean
  /**
   * Adds the fragments of one frame; `changed` receives the new piece of arguments, which may be empty. False when a
   * fragment opens more calls than an answer may hold.
   */
  push(fragments: unknown): boolean
}

/** Above this the answer is broken, and each fragment would be compared with all calls. */
export function assembleCalls(maxCalls: number, changed: (call: OpenCall, piece: string) => void): CallAssembler {
  const calls: OpenCall[] = []

  const find = (
    id: string | undefined,
    index: number | undefined,
    name: string,
    piece: string,
    place: number | undefined,
  ): OpenCall | undefined => {
    if (id !== undefined) {
      const same = calls.findLast((call) => call.id === id && (index === undefined || (call.index ?? index) === index))
      if (same) return same
    }
    const last =
      index !== undefined ? calls.findLast((call) => call.index === index) : (calls[place ?? -1] ?? calls.at(-1))
    if (!last) return undefined
    // Without a name this cannot be a new call, so its id changes with each fragment.
    if (name === '') return last
    if (id !== undefined && last.id !== undefined) return undefined
    if (last.tool === '') return last
    // A name without an id: some providers repeat the name on every fragment, others reuse one index.
    return last.tool === name && !(piece !== '' && last.objectEnd.reached(last.parts)) ? last : undefined
  }

  return {
    calls,
    get whole() {
      return calls.every(({ parts, objectEnd }) => parts.length === 0 || objectEnd.reached(parts))
    },
    push(fragments) {
      if (!Array.isArray(fragments)) return true
      /** Two fragments of one frame with a tool name are two calls, unless their ids are the same. */
      const named = new Set<OpenCall>()
      for (let i = 0; i < fragments.length; i++) {
        const fragment = fragments[i] as CallFragment | null
        if (typeof fragment !== 'object' || fragment === null) continue
        const { name: rawName, arguments: rawArguments } = fragment.function ?? {}
        const name = typeof rawName === 'string' ? clippedName(rawName) : ''
        const piece = typeof rawArguments === 'string' ? rawArguments : jsonText(rawArguments)
        const id = realId(fragment.id)
        const index = typeof fragment.index === 'number' ? fragment.index : undefined
        if (id === undefined && name === '' && piece === '') continue
        let call = find(id, index, name, piece, fragments.length > 1 ? i : undefined)
        if (call && id === undefined && name !== '' && named.has(call)) call = undefined
        if (!call) {
          if (calls.length === maxCalls) return false
          call = { index, id, tool: name, parts: [], objectEnd: objectEnd(), block: undefined }
          calls.push(call)
        }
        call.id ??= id
        if (call.tool === '') call.tool = name
        // A name in two pieces: the id says that it is one call, and nobody has been told of it yet.
        else if (id !== undefined && call.block === undefined && name !== call.tool)
          call.tool = clippedName(call.tool + name)
        if (name !== '') named.add(call)
        if (piece !== '') call.parts.push(piece)
        changed(call, piece)
      }
      return true
    },
  }
}

const realId = (id: unknown): string | undefined =>
  typeof id === 'string' && id !== '' && id !== 'null' ? id : typeof id === 'number' ? String(id) : undefined

const jsonText = (value: unknown): string => (value === undefined || value === null ? '' : JSON.stringify(value))

interface ObjectEnd {
  /** Whether the parts so far are one whole JSON object. Reads each part once, and only on demand. */
  reached(parts: readonly string[]): boolean
}

function objectEnd(): ObjectEnd {
  let read = 0
  let depth = 0
  let inString = false
  let escaped = false
  /** Undefined until the first value has ended; only white space may follow. */
  let whole: boolean | undefined

  /** Where the first value ends, -1 when it continues. */
  const endIn = (part: string): number => {
    for (let at = 0; at < part.length; at++) {
      const code = part.charCodeAt(at)
      if (escaped) escaped = false
      else if (inString && code === 92) escaped = true
      else if (code === 34) inString = !inString
      else if (inString || code <= 32) continue
      else if (code === 123 || code === 91) depth++
      else if (code === 125 || code === 93) depth--
      if (depth <= 0 && !inString) return at + 1
    }
    return -1
  }
  return {
    reached(parts) {
      for (; read < parts.length && whole !== false; read++) {
        const part = parts[read]!
        const end = whole ? 0 : endIn(part)
        if (end === -1) continue
        whole = part.slice(end).trim() === '' && (whole ?? isObject(parts.slice(0, read + 1).join('')))
      }
      return whole === true
    },
  }
}

function isObject(text: string): boolean {
  if (!text.trimEnd().endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

// Server-sent events, scanned as bytes: only whole lines are decoded, so a character that is split between two reads
// stays whole.

export interface SseReader {
  /** Adds the next bytes and calls back for each event and stray line that they complete. */
  push(bytes: Uint8Array): void
  /** Ends the stream: an event without its closing blank line is emitted too. */
  end(): void
}

/**
 * @param onEvent called with the data of each event, its lines joined by a line feed, and the event's name or ''
 * @param onStray called with each line that is neither a field of the format nor a comment
 * @example
 * const reader = sseReader((data) => console.log(data))
 * reader.push(Buffer.from('data: hello\n\n')) // logs "hello"
 */
export function sseReader(
  onEvent: (data: string, event: string) => void,
  onStray: (line: string) => void = () => {},
): SseReader {
  /** The pieces of an incomplete line. */
  let begun: Buffer[] = []
  let data: string | undefined
  let event = ''
  let isFirstLine = true
  /** The last byte was a CR: an LF that follows belongs to it. */
  let afterCr = false

  const dispatch = () => {
    const [complete, name] = [data, event]
    data = undefined
    event = ''
    if (complete !== undefined) onEvent(complete, name)
  }
  const addData = (text: string) => {
    data = data === undefined ? text : `${data}\n${text}`
  }
  const takeLine = (bytes: Buffer, start: number, end: number) => {
    if (isFirstLine) {
      isFirstLine = false
      if (hasByteOrderMark(bytes, start)) start += 3
    }
    if (start >= end) return dispatch()
    if (bytes[start] === COLON) return
    if (isData(bytes, start)) return addData(bytes.toString('utf8', start + (bytes[start + 5] === SPACE ? 6 : 5), end))
    takeField(bytes.toString('utf8', start, end))
  }
  const takeField = (line: string) => {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    if (name === 'event') event = colon === -1 ? '' : line.slice(colon + 1).trim()
    else if (name === 'data') addData('')
    else if (name !== 'id' && name !== 'retry') onStray(line)
  }
  const takeBegun = (bytes: Buffer, start: number, end: number) => {
    if (begun.length === 0) return takeLine(bytes, start, end)
    const line = Buffer.concat([...begun, bytes.subarray(start, end)])
    begun = []
    takeLine(line, 0, line.length)
  }

  return {
    push(chunk) {
      if (chunk.length === 0) return
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      let start = afterCr && bytes[0] === LF ? 1 : 0
      afterCr = false
      const hasCr = bytes.includes(CR)
      for (;;) {
        const end = hasCr ? lineEnd(bytes, start) : bytes.indexOf(LF, start)
        if (end === -1) break
        takeBegun(bytes, start, end)
        start = end + 1
        if (bytes[end] !== CR) continue
        if (start === bytes.length) afterCr = true
        else if (bytes[start] === LF) start++
      }
      if (start < bytes.length) begun.push(bytes.subarray(start))
    },
    end() {
      if (begun.length > 0) takeBegun(Buffer.alloc(0), 0, 0)
      dispatch()
    },
  }
}

const [LF, CR, SPACE, COLON] = [10, 13, 32, 58]

const hasByteOrderMark = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf

/** `data:` as bytes: nearly every line that is not blank begins so. */
const isData = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 100 && bytes[at + 1] === 97 && bytes[at + 2] === 116 && bytes[at + 3] === 97 && bytes[at + 4] === COLON

function lineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === LF || bytes[at] === CR) return at
  return -1
}

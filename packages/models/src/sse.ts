// Server-sent events, as the standard reads them: one streaming UTF-8 decoder; lines end at LF, CR LF or CR and nowhere
// else; `data` lines of one event are joined by LF; comments and other fields are passed over.

export interface SseReader {
  /** Takes the next bytes; calls `onData` for each event that is complete. */
  push(bytes: Uint8Array): void
  /** The stream ended: the data of the event that was not closed by a blank line, if there is one. */
  end(): string | undefined
}

export function sseReader(onData: (data: string) => void): SseReader {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string | undefined
  let afterCr = false

  const line = (text: string, start: number, end: number) => {
    if (start === end) {
      if (data === undefined) return
      const complete = data
      data = undefined
      onData(complete)
    } else if (text.startsWith('data', start)) {
      const colon = start + 4
      if (end === colon) data = data === undefined ? '' : `${data}\n`
      else if (text.charCodeAt(colon) === 58) {
        const value = text.slice(text.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1, end)
        data = data === undefined ? value : `${data}\n${value}`
      }
    }
  }

  const lines = (text: string): string => {
    let start = 0
    if (afterCr) {
      afterCr = false
      if (text.charCodeAt(0) === 10) start = 1
    }
    let cr = text.indexOf('\r', start)
    for (;;) {
      const lf = text.indexOf('\n', start)
      if (cr !== -1 && (lf === -1 || cr < lf)) {
        line(text, start, cr)
        start = cr + 1
        if (start === text.length) afterCr = true
        else if (text.charCodeAt(start) === 10) start++
        cr = text.indexOf('\r', start)
      } else if (lf !== -1) {
        line(text, start, lf)
        start = lf + 1
      } else return start === 0 ? text : text.slice(start)
    }
  }

  return {
    push(bytes) {
      const text = decoder.decode(bytes, streaming)
      // Looking for a line end in the new text only keeps a line that comes in many pieces linear.
      if (rest !== '' && !text.includes('\n') && !text.includes('\r')) rest += text
      else rest = lines(rest === '' ? text : rest + text)
    },
    end() {
      const text = rest + decoder.decode()
      rest = ''
      line(text, 0, text.length)
      const unclosed = data
      data = undefined
      return unclosed
    },
  }
}

const streaming = { stream: true }

// Reads an event stream frame by frame, as a client that may disconnect at any time.
import type { Frame } from '../test.fixture.ts'

export interface StreamReader {
  readonly frames: Frame[]
  /** The last `id:` received. */
  readonly lastId: string | undefined
  /** Reads until a frame satisfies the condition, and returns that frame; undefined at the end. */
  until(condition: (frame: Frame) => boolean): Promise<Frame | undefined>
  rest(): Promise<Frame[]>
  leave(): Promise<void>
}

export function readStream(answer: Response): StreamReader {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  const frames: Frame[] = []
  let buffer = ''
  let next = 0
  let lastId: string | undefined

  const more = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    if (done) return false
    buffer += value
    const parts = buffer.split('\n\n')
    buffer = parts.pop()!
    for (const line of parts.flatMap((part) => part.split('\n'))) {
      if (line.startsWith('id: ')) lastId = line.slice(4)
      else if (line.startsWith('data: ')) frames.push(JSON.parse(line.slice(6)))
    }
    return true
  }
  return {
    frames,
    get lastId() {
      return lastId
    },
    async until(condition) {
      for (;;) {
        while (next < frames.length) {
          const frame = frames[next++]!
          if (condition(frame)) return frame
        }
        if (!(await more())) return undefined
      }
    },
    async rest() {
      while (await more());
      return frames
    },
    leave: () => reader.cancel(),
  }
}

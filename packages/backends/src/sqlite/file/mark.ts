// A separate record of the newest event: a database or log that lost its end is still consistent, and only an external
// record shows the loss. Written after each commit and without waiting for the disk: after a power failure it may be
// older than the database, never newer.
// Loaded by the writer thread too, so it only imports from Node.
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'

export interface Mark {
  /** The row of the newest acknowledged event. */
  readonly id: number
  readonly sum: number
}

export const markPath = (path: string): string => `${path}-mark`

const format = ({ id, sum }: Mark): string => {
  const text = `oxbow ${id} ${sum}`
  return `${`${text} ${crc32(text)}`.padEnd(63)}\n`
}

/**
 * The mark next to a database. Undefined when there is none, or one that never reached the disk; `damaged` when its
 * checksum is wrong.
 */
export function readMark(path: string): Mark | 'damaged' | undefined {
  let text: string
  try {
    text = readFileSync(markPath(path), 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  if (/^\0*$/.test(text)) return undefined
  const [, id, sum] = /^oxbow (\d+) (\d+) \d+ *\n$/.exec(text) ?? []
  const mark = { id: Number(id), sum: Number(sum) }
  return format(mark) === text ? mark : 'damaged'
}

/** Opens the mark for writing. A failure to write it is ignored: the events are stored. */
export function openMark(path: string): { write(mark: Mark): void; close(): void } {
  let file: number | undefined
  return {
    write(mark) {
      try {
        file ??= openSync(markPath(path), constants.O_WRONLY | constants.O_CREAT, 0o600)
        writeSync(file, format(mark), 0, 'latin1')
      } catch {
        // The next commit tries again; the check of the store reports what is wrong with the disk.
      }
    },
    close() {
      if (file !== undefined) closeSync(file)
    },
  }
}

// Server-sent events over bytes, by a library: a scanner of our own was no faster beyond the noise.
import { createParser } from 'eventsource-parser'

export interface SseReader {
  /** Takes the next bytes; calls `onData` for each event that is complete. */
  push(bytes: Uint8Array): void
  /** The stream ended: an event that was not closed by a blank line is given out as it is. */
  end(): void
}

/** One streaming decoder per stream, so that a character that is cut between two reads stays whole. */
export function sseReader(onData: (data: string) => void): SseReader {
  const decoder = new TextDecoder()
  const parser = createParser({ onEvent: ({ data }) => onData(data) })
  return {
    push: (bytes) => parser.feed(decoder.decode(bytes, streaming)),
    end: () => parser.feed(`${decoder.decode()}\n\n`),
  }
}

const streaming = { stream: true }

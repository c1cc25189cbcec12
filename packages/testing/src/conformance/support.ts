import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend, Event, Journal, SessionKey, SessionSummary } from '@oxbow/core'

/** A back end under test. */
export interface Subject {
  /** Goes before the title of each test. */
  readonly name: string
  /** The `test` of vitest or of node:test. */
  readonly test: (title: string, run: () => Promise<void>) => unknown
  /** Opens the back end whose data belong to this directory. The suite closes it and deletes the directory. */
  readonly open: (directory: string) => Promise<Backend>
  /**
   * A module that exports `open`, the same function. With it, the back end must also keep what it acknowledged over
   * close, a second opening and `kill -9`, and be safe for several processes at once: the suite starts some.
   */
  readonly processes?: URL
  /** Removes what the data of a directory left outside of it, for example a database. */
  readonly drop?: (directory: string) => Promise<unknown>
}

/** Runs one test on a back end of its own. */
export type ConformanceCheck = (title: string, run: (backend: Backend, directory: string) => Promise<void>) => void

export const checkOf =
  (subject: Subject): ConformanceCheck =>
  (title, run) => {
    subject.test(`${subject.name}: ${title}`, () =>
      withDirectory(subject, async (directory) => {
        const backend = await subject.open(directory)
        try {
          await run(backend, directory)
        } finally {
          await backend.close()
        }
      }),
    )
  }

export async function withDirectory(
  { drop }: Pick<Subject, 'drop'>,
  run: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'oxbow-conformance-'))
  try {
    await run(directory)
  } finally {
    await drop?.(directory)
    await rm(directory, { recursive: true, force: true })
  }
}

export const someKey: SessionKey = { tenant: 'acme', user: 'ada', session: 'first' }
export const summary: Pick<SessionSummary, 'status' | 'agent' | 'title'> = {
  status: 'running',
  agent: 'assistant',
  title: 'Hello',
}

/** Event `seq` of a journal, at `seq` milliseconds unless told otherwise. */
export const conformanceEvent = (seq: number, text = `event ${seq}`, at = seq): Event => ({
  type: 'turn.steered',
  turnId: 'turn-1',
  inputId: `input-${seq}`,
  input: [{ type: 'text', text }],
  principal: { user: 'ada' },
  seq,
  at,
})

/** The events after `afterSeq`. */
export const eventsAfter = (afterSeq: number, count: number, text?: string): Event[] =>
  Array.from({ length: count }, (_, index) => conformanceEvent(afterSeq + 1 + index, text))

/** All events of a session, read in pages. */
export async function readAll(journal: Journal, key: SessionKey, pageSize = 500): Promise<Event[]> {
  const events: Event[] = []
  for (;;) {
    const page = await journal.read(key, events.length, pageSize)
    for (const one of page) events.push(one)
    if (page.length < pageSize) return events
  }
}

/** Polls until `condition` holds, for what has no signal to wait for; rejects after `withinMs`. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>, withinMs = 5_000) {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

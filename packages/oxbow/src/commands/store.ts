// `oxbow store check`: checks that all stored data is present and unchanged.
import { type Backend, OxbowError, type StoreReport } from '@oxbow/core'
import { EXIT } from '../exit-codes.ts'
import { configOf, hasStore, nameOfStore, noStore, openBackend, type RuntimeOptions } from '../runtime.ts'
import { printable } from '../terminal/transcript.ts'

interface StoreCommand extends RuntimeOptions {
  readonly json?: boolean
}

const SHOW_EVERY_MS = 1_000

/** Checks the whole store and prints the report; progress goes to standard error on a terminal. */
export async function check(options: StoreCommand): Promise<void> {
  const config = await configOf(options)
  const report = await reportOn(() => {
    if (!hasStore(config)) throw noStore(config)
    return openBackend(config)
  })
  if (options.json)
    console.log(JSON.stringify({ store: nameOfStore(config), ok: report.problems.length === 0, ...report }))
  else for (const line of inWords(nameOfStore(config), report)) console.log(printable(line))
  if (report.problems.length > 0) process.exitCode = EXIT.failed
}

/** A store too damaged to open still gets a report. */
async function reportOn(open: () => Backend): Promise<StoreReport> {
  let backend: Backend
  try {
    backend = open()
  } catch (error) {
    if (!(error instanceof OxbowError) || !error.code.startsWith('journal_')) throw error
    return { sessions: 0, events: 0, files: 0, unchecked: 0, marked: false, problems: [error.message] }
  }
  try {
    return await backend.verify(progress())
  } finally {
    await backend.close()
  }
}

function progress(): (done: number, total: number) => void {
  let shownAt = performance.now()
  return (done, total) => {
    if (!process.stderr.isTTY || performance.now() - shownAt < SHOW_EVERY_MS) return
    shownAt = performance.now()
    process.stderr.write(`\r${Math.floor((100 * done) / Math.max(total, 1))} % of ${total} events`)
  }
}

function inWords(path: string, { sessions, events, files, unchecked, marked, problems }: StoreReport): string[] {
  return [
    `${path}: ${sessions} sessions, ${events} events, ${files} files`,
    ...(unchecked === 0
      ? []
      : [`${unchecked} of them were stored by an older version without a checksum and were not checked.`]),
    ...(marked ? [] : ['There is no record of the newest event, so missing events at the end would not be detected.']),
    ...problems.map((it) => `Problem: ${it}`),
    problems.length === 0
      ? 'No damage found.'
      : 'The store is damaged. Stop every Oxbow that uses it, keep a copy of all its files, and restore a backup.',
  ]
}

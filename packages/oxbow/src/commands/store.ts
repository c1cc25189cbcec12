// `oxbow store`: checks, backups and moves of everything that is stored.
import {
  loadRecords,
  readBackup,
  type StoreRecord,
  storeRecords,
  type TransferCounts,
  writeBackup,
} from '@oxbow/backends/transfer'
import { type Backend, eraseData, OxbowError, type StoreReport } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { EXIT } from '../exit-codes.ts'
import {
  atTerminal,
  configOf,
  hasStore,
  nameOfStore,
  noStore,
  openBackend,
  openRuntime,
  type RuntimeOptions,
  withBackend,
} from '../runtime.ts'
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

interface EraseCommand extends RuntimeOptions {
  readonly tenant: string
  readonly user?: string
  readonly session?: string
  readonly allUsers?: boolean
  readonly yes?: boolean
}

/** Erases a session, a user or a tenant. Without `--yes` it only counts. */
export async function erase({ tenant, user, session, allUsers, yes, ...options }: EraseCommand): Promise<void> {
  if ((user === undefined) !== (allUsers === true))
    throw new OxbowError('invalid_option', 'Name the user with --user, or all users of the tenant with --all-users.')
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  const runtime = await openRuntime(config, { ...atTerminal, engine: { ...atTerminal.engine, role: 'api' } })
  const { backend, engine } = runtime
  try {
    if (yes !== true) {
      let sessions = 0
      for await (const { key } of backend.journal.sessions({ tenant, ...defined({ user }) }))
        if (session === undefined || key.session === session) sessions += 1
      console.log(`${sessions} sessions would be erased for good, with their files. Repeat the command with --yes.`)
      process.exitCode = EXIT.failed
      return
    }
    const erased = await eraseData(engine, { tenant, ...defined({ user, session }) }, { user: 'command line' })
    console.log(`erased ${erased.sessions} sessions and ${erased.files} files`)
  } finally {
    await engine.stop()
    await runtime.close()
  }
}

interface BackupCommand extends RuntimeOptions {
  readonly tenant?: string
  readonly user?: string
}

/** Writes a backup while the store is in use. */
export async function backup(path: string, { tenant, user, ...options }: BackupCommand): Promise<void> {
  await withBackend(options, async (from) => {
    const counts = await writeBackup(path, storeRecords(from, defined({ tenant, user })), transferred('saved'))
    console.log(`${path}: ${inNumbers(counts)}`)
  })
}

/** Loads a backup; repeated after an interruption it continues. */
export async function restore(path: string, options: RuntimeOptions): Promise<void> {
  const config = await configOf(options)
  await loadInto(openBackend(config), nameOfStore(config), readBackup(path))
}

/** Copies a store; repeated after an interruption, or when the source has grown, it continues. */
export async function migrateStore({ from, to }: { readonly from: string; readonly to: string }): Promise<void> {
  const [source, target] = await Promise.all([configOf({ store: placeOf(from) }), configOf({ store: placeOf(to) })])
  if (!hasStore(source)) throw noStore(source)
  if (nameOfStore(source) === nameOfStore(target))
    throw new OxbowError('config_invalid', `--from and --to are the same store: ${nameOfStore(source)}.`)
  const old = openBackend(source)
  try {
    await loadInto(openBackend(target), nameOfStore(target), storeRecords(old))
  } finally {
    await old.close()
  }
  console.log('Run it once more after the services on the old store have stopped, then start them on the new one.')
}

const placeOf = (store: string): string => store.replace(/^sqlite:(\/\/)?/, '')

async function loadInto(target: Backend, name: string, records: AsyncIterable<StoreRecord>): Promise<void> {
  try {
    const counts = await loadRecords(target, records, transferred('loaded'))
    console.log(`${name}: ${inNumbers(counts)}. All sessions were compared with their source.`)
  } finally {
    await target.close()
  }
}

const inNumbers = ({ sessions, events, files }: TransferCounts): string =>
  `${sessions} sessions, ${events} events, ${files} files`

/** A line that is rewritten on a terminal, and a new one now and then elsewhere. */
function transferred(what: string): (counts: TransferCounts) => void {
  const every = process.stderr.isTTY ? SHOW_EVERY_MS : 10 * SHOW_EVERY_MS
  let shownAt = performance.now()
  return (counts) => {
    if (performance.now() - shownAt < every) return
    shownAt = performance.now()
    process.stderr.write(
      `${process.stderr.isTTY ? '\r' : ''}${what}: ${inNumbers(counts)}${process.stderr.isTTY ? '' : '\n'}`,
    )
  }
}

// A backup: one JSON object a line, a header first, and last the number of records with a checksum of all lines before.
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, rename, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { OxbowError } from '@oxbow/core'
import type { OnTransfer } from './load.ts'
import type { StoreRecord, TransferCounts } from './records.ts'

const VERSION = 1
const PROGRESS_EVERY = 500

interface Header {
  readonly oxbowBackup: number
  readonly at: string
}

interface End {
  readonly end: TransferCounts & { readonly sha256: string }
}

const isCompressed = (path: string): boolean => path.endsWith('.gz')

/**
 * Writes a backup, compressed if its name ends with `.gz`. The file appears under its name when it is whole; only its
 * owner may read it.
 *
 * @throws OxbowError `backup_invalid` when the file exists
 */
export async function writeBackup(
  path: string,
  records: AsyncIterable<StoreRecord>,
  onProgress: OnTransfer = () => {},
): Promise<TransferCounts> {
  if (await exists(path)) throw new OxbowError('backup_invalid', `${path} exists. Choose another name.`)
  const counts = { sessions: 0, events: 0, files: 0 }
  const sum = createHash('sha256')
  const line = (value: unknown): string => {
    const text = `${JSON.stringify(value)}\n`
    sum.update(text)
    return text
  }
  async function* lines(): AsyncGenerator<string> {
    yield line({ oxbowBackup: VERSION, at: new Date().toISOString() } satisfies Header)
    for await (const it of records) {
      yield line(it.type === 'file' ? { ...it, data: Buffer.from(it.data).toString('base64') } : it)
      if (it.type === 'session') counts.sessions += 1
      else if (it.type === 'event') counts.events += 1
      else if (it.type === 'file') counts.files += 1
      if (counts.events % PROGRESS_EVERY === 0) onProgress(counts)
    }
    yield `${JSON.stringify({ end: { ...counts, sha256: sum.digest('hex') } } satisfies End)}\n`
  }
  const part = `${path}.${randomUUID().slice(0, 8)}.part`
  try {
    const file = createWriteStream(part, { mode: 0o600, flags: 'wx', flush: true })
    await (isCompressed(path) ? pipeline(lines, createGzip(), file) : pipeline(lines, file))
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
  onProgress(counts)
  return counts
}

/**
 * Reads the whole file first and compares its checksum: nothing of a damaged backup is loaded.
 *
 * @throws OxbowError `backup_invalid` for what is no backup, incomplete, changed, or of a newer version
 */
export async function* readBackup(path: string): AsyncGenerator<StoreRecord> {
  await checkBackup(path)
  for await (const text of linesOf(path)) {
    const it = JSON.parse(text) as Header | End | (StoreRecord & { readonly data?: string })
    if ('oxbowBackup' in it || 'end' in it) continue
    yield it.type === 'file' ? { ...it, data: Buffer.from(it.data as unknown as string, 'base64') } : it
  }
}

async function checkBackup(path: string): Promise<void> {
  const invalid = (what: string): OxbowError => new OxbowError('backup_invalid', `${path} ${what}.`)
  const sum = createHash('sha256')
  let first = true
  let end: End['end'] | undefined
  try {
    for await (const text of linesOf(path)) {
      if (end !== undefined) throw invalid('has more lines than its last one counts')
      const value = objectIn(text)
      if (first) {
        const version = value?.oxbowBackup
        if (typeof version !== 'number') throw invalid('is not a backup of Oxbow')
        if (version > VERSION) throw invalid(`was written by a newer version of Oxbow (format ${version})`)
        first = false
      }
      if (value !== undefined && 'end' in value) end = value.end as End['end']
      else sum.update(`${text}\n`)
    }
  } catch (error) {
    if (error instanceof OxbowError) throw error
    throw new OxbowError('backup_invalid', `${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  if (first) throw invalid('is empty')
  if (end === undefined) throw invalid('is incomplete: its last line is missing')
  if (end.sha256 !== sum.digest('hex')) throw invalid('has been changed: its checksum differs')
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const file = createReadStream(path)
  const source = isCompressed(path) ? createGunzip() : undefined
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  for (const it of [file, source]) it?.on('error', failed.reject)
  const lines = createInterface({ input: source === undefined ? file : file.pipe(source), crlfDelay: Infinity })
  const each = lines[Symbol.asyncIterator]()
  for (;;) {
    const next = await Promise.race([each.next(), failed.promise])
    if (next.done === true) return
    yield next.value
  }
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

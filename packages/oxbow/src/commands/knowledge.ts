// `oxbow knowledge`: indexes documents, searches passages and measures quality.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { OxbowError } from '@oxbow/core'
import { evaluate, type IndexProgress, type Knowledge, openKnowledge, parseLabels } from '@oxbow/knowledge'
import { EXIT } from '../exit-codes.ts'
import { inLine, printable } from '../terminal/transcript.ts'

/** How many files are listed by name; a folder of pictures has thousands. */
const MAX_SKIPPED = 20

interface KnowledgeCommand {
  readonly index: string
  readonly json?: boolean
}

export async function add(paths: readonly string[], options: KnowledgeCommand): Promise<void> {
  const cancel = new AbortController()
  const onInterrupt = (): void => cancel.abort()
  process.once('SIGINT', onInterrupt)
  try {
    await withKnowledge(options, async (knowledge) => {
      const report = await knowledge.add(paths, { onProgress: progressLine(), signal: cancel.signal })
      clearLine()
      if (options.json) console.log(JSON.stringify(report))
      else {
        const { added, changed, renamed, removed, unchanged } = report
        console.log(
          `${added} added, ${changed} changed, ${renamed} renamed, ${removed} removed, ${unchanged} unchanged` +
            ` (${(await knowledge.documents()).length} documents in ${inLine(options.index)})`,
        )
      }
      for (const it of report.problems) console.error(`skipped: ${inLine(`${it.path}: ${it.message}`)}`)
      for (const it of report.skipped.slice(0, MAX_SKIPPED))
        console.error(`not read: ${inLine(`${it.path}: ${it.reason}`)}`)
      const more = report.skipped.length - MAX_SKIPPED
      if (more > 0) console.error(`not read: ${more} more files. --json lists them.`)
      if (report.problems.length > 0) process.exitCode = EXIT.failed
    })
  } catch (error) {
    if (!cancel.signal.aborted) throw error
    clearLine()
    console.error('oxbow: interrupted. The index keeps what was read; run the same command again to continue.')
    process.exitCode = EXIT.interrupted
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

export function removeKnowledge(paths: readonly string[], options: KnowledgeCommand): Promise<void> {
  return withKnowledge(existing(options), async (knowledge) => {
    const roots = await knowledge.roots()
    const unknown = paths.find((it) => !roots.includes(resolve(it)))
    if (unknown !== undefined)
      throw new OxbowError(
        'options_invalid',
        `${inLine(unknown)} was not added. Only added paths can be removed: ${roots.map(inLine).join(', ') || 'none'}.`,
      )
    const removed = await knowledge.remove(paths)
    console.log(options.json ? JSON.stringify({ removed }) : `${removed} removed`)
  })
}

export function listKnowledge(options: KnowledgeCommand): Promise<void> {
  return withKnowledge(existing(options), async (knowledge) => {
    const documents = await knowledge.documents()
    if (options.json) {
      for (const it of documents) console.log(JSON.stringify(it))
      return
    }
    for (const { name, title, passages } of documents)
      console.log(
        `${String(passages).padStart(6)} passages  ${inLine(title === undefined ? name : `${name}  ${title}`)}`,
      )
    for (const it of await knowledge.problems()) console.error(`skipped: ${inLine(`${it.path}: ${it.message}`)}`)
  })
}

export function searchKnowledge(question: string, options: KnowledgeCommand & { readonly k: string }): Promise<void> {
  return withKnowledge(existing(options), async (knowledge) => {
    const result = await knowledge.search(question, { k: countOf(options.k) })
    if (options.json) {
      console.log(JSON.stringify(result))
      return
    }
    if (result.hits.length === 0) console.log('No passage matches.')
    for (const { id, title, headings, text, page, exact } of result.hits) {
      const place = headings.length > 0 ? headings.join(' › ') : (title ?? '')
      console.log(printable(`[${id}] ${place}${page === undefined ? '' : `, page ${page}`}${exact ? ' (exact)' : ''}`))
      console.log(
        `${text
          .split('\n')
          .map((it) => `    ${printable(it)}`)
          .join('\n')}\n`,
      )
    }
    for (const it of result.channels)
      if (it.status === 'failed') console.error(`${it.channel} failed: ${printable(it.reason ?? '')}`)
      else if (it.status === 'answered' && it.reason !== undefined)
        console.error(`${it.channel}: ${printable(it.reason)}`)
  })
}

export function evaluateLabels(file: string, options: KnowledgeCommand & { readonly k: string }): Promise<void> {
  return withKnowledge(existing(options), async (knowledge) => {
    const k = countOf(options.k)
    const text = await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new OxbowError('labels_invalid', `The labels ${file} cannot be read.`, { cause })
    })
    // Several passages of one document count once, so more than k are requested.
    const ids = async (query: string) => (await knowledge.search(query, { k: k * 4 })).hits.map((it) => it.id)
    const qualities = await evaluate(parseLabels(text), ids, k)
    if (options.json) {
      for (const it of qualities) console.log(JSON.stringify({ ...it, k }))
      return
    }
    console.log(
      `${'set'.padEnd(16)} ${'queries'.padStart(7)} ${`recall@${k}`.padStart(9)} ${'MRR'.padStart(6)} ${`nDCG@${k}`.padStart(8)}`,
    )
    for (const { set, queries, recall, mrr, ndcg } of qualities)
      console.log(
        `${printable(set).padEnd(16)} ${String(queries).padStart(7)} ${recall.toFixed(3).padStart(9)} ${mrr.toFixed(3).padStart(6)} ${ndcg.toFixed(3).padStart(8)}`,
      )
  })
}

async function withKnowledge(
  { index }: KnowledgeCommand,
  work: (knowledge: Knowledge) => Promise<void>,
): Promise<void> {
  const knowledge = openKnowledge({ path: index })
  try {
    await work(knowledge)
  } finally {
    await knowledge.close()
  }
}

/** Reading must not create an empty index where the path was mistyped. */
function existing<T extends KnowledgeCommand>(options: T): T {
  if (existsSync(options.index)) return options
  throw new OxbowError('no_index', `No index at ${options.index}. Create one with: oxbow knowledge add PATH`)
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0 && count <= 100) return count
  throw new OxbowError('options_invalid', `-k must be a whole number from 1 to 100: got ${text}.`)
}

/** One line on a terminal that is overwritten; nothing for scripts. */
function progressLine(): (progress: IndexProgress) => void {
  let writtenAt = 0
  return (it) => {
    if (!process.stderr.isTTY || performance.now() - writtenAt < 100) return
    writtenAt = performance.now()
    const what = it.phase === 'reading' ? `reading ${it.path}` : 'embedding'
    process.stderr.write(`\r\x1b[K${it.done}/${it.total} ${inLine(what).slice(0, (process.stderr.columns ?? 80) - 20)}`)
  }
}

function clearLine(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}

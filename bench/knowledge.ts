// `npm run bench -- --knowledge`: an index of 100,000 passages, made up of words as frequent as those of a language
// are.
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Embedder, openKnowledge } from '@oxbow/knowledge'
import { inProcess } from './processes.ts'
import { percentile } from './statistics.ts'

interface KnowledgeJob {
  readonly directory: string
  readonly passages: number
  /** Dimensions of the vectors; 0 measures words alone. */
  readonly dimensions: number
}

interface KnowledgeFigures {
  readonly passages: number
  readonly megabytesOfText: number
  readonly indexSeconds: number
  readonly unchangedSeconds: number
  readonly queryMsP50: number
  readonly queryMsP95: number
  readonly rssMb: number
  readonly fileMb: number
}

const PASSAGES_PER_FILE = 50

/** The same numbers in every run. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const next = random(7)
const syllables = [
  'ba',
  'con',
  'de',
  'fer',
  'gra',
  'in',
  'ka',
  'lo',
  'men',
  'no',
  'per',
  'ra',
  'ser',
  'ti',
  'ver',
  'zu',
]
const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!
const english = Array.from(
  { length: 30_000 },
  () => pick(syllables) + pick(syllables) + (next() < 0.5 ? pick(syllables) : ''),
)
const characters = Array.from({ length: 3_000 }, (_, n) => String.fromCodePoint(0x4e00 + n * 6))
/** Zipf: the word at rank r comes with a probability of about 1 / r. */
const zipf = <T>(from: readonly T[]): T => from[Math.floor(from.length ** next()) - 1]!
const words = (count: number): string => Array.from({ length: count }, () => zipf(english)).join(' ')
const chinese = (count: number): string => Array.from({ length: count }, () => zipf(characters)).join('')
const order = (n: number): string => `ORD-2024-${String(n).padStart(6, '0')}`

function passage(n: number): string {
  const text = n % 4 === 0 ? `${chinese(90)}。${chinese(60)}。` : `${words(30)}. ${words(25)}.`
  return `## ${n % 4 === 0 ? chinese(6) : words(3)}\n\n${text} ${order(n)}\n`
}

async function measure({ directory, passages, dimensions }: KnowledgeJob): Promise<KnowledgeFigures> {
  const folder = join(directory, 'documents')
  mkdirSync(folder)
  let bytes = 0
  for (let file = 0; file < passages / PASSAGES_PER_FILE; file++) {
    const text = Array.from({ length: PASSAGES_PER_FILE }, (_, n) => passage(file * PASSAGES_PER_FILE + n)).join('\n')
    bytes += Buffer.byteLength(text)
    writeFileSync(join(folder, `${file}.md`), text)
  }
  const path = join(directory, 'knowledge.db')
  const embedder: Embedder = {
    id: 'random',
    embed: async (texts) => ({
      vectors: texts.map(() => Float32Array.from({ length: dimensions }, () => next() - 0.5)),
    }),
  }
  const knowledge = openKnowledge({ path, ...(dimensions === 0 ? {} : { embedder }) })
  const seconds = async (work: () => Promise<unknown>): Promise<number> => {
    const startedAt = performance.now()
    await work()
    return (performance.now() - startedAt) / 1_000
  }
  const indexSeconds = await seconds(() => knowledge.add([folder]))
  const unchangedSeconds = await seconds(() => knowledge.refresh())
  const count = (await knowledge.documents()).reduce((sum, it) => sum + it.passages, 0)

  const questions = Array.from({ length: 150 }, (_, n) =>
    n % 3 === 0 ? chinese(12) : n % 3 === 1 ? `${words(6)}?` : `where is ${order(Math.floor(next() * passages))}`,
  )
  for (const it of questions.slice(0, 20)) await knowledge.search(it)
  const timesMs: number[] = []
  for (const it of questions) timesMs.push((await seconds(() => knowledge.search(it))) * 1_000)
  const figures = {
    passages: count,
    megabytesOfText: bytes / 1e6,
    indexSeconds,
    unchangedSeconds,
    queryMsP50: percentile(timesMs, 50),
    queryMsP95: percentile(timesMs, 95),
    rssMb: process.memoryUsage.rss() / 1e6,
    fileMb: 0,
  }
  await knowledge.close()
  return { ...figures, fileMb: statSync(path).size / 1e6 }
}

/** Each row in its own process. */
export async function knowledgeFigures(
  inDirectory: <T>(work: (directory: string) => Promise<T>) => Promise<T>,
  quick: boolean,
): Promise<Record<string, KnowledgeFigures>> {
  const passages = quick ? 10_000 : 100_000
  const run = (dimensions: number) =>
    inDirectory((directory) =>
      inProcess<KnowledgeFigures>('./knowledge.ts', { directory, passages, dimensions } satisfies KnowledgeJob),
    )
  return { 'words alone': await run(0), 'words and vectors of 384 numbers': await run(384) }
}

if (process.send !== undefined)
  process.once('message', async (job) => {
    process.send!(await measure(job as KnowledgeJob))
    process.disconnect()
  })

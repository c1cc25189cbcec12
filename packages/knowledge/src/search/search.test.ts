import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import type { Embedder } from '../embedder.ts'
import { letterEmbedder, names, place } from '../helpers.fixture.ts'
import type { KnowledgeIndexOptions } from '../knowledge.ts'
import { reader } from './reading.ts'
import type { SearchOptions } from './search.ts'

const files = {
  'lamps.md': '# Lamps\n\nLamps are delivered in two days.',
  'desks.md': '# Desks\n\nDesks are delivered by two carriers.',
  'guide/chairs.md': '# Chairs\n\nChairs are delivered on Mondays.',
}

async function knowing(options: Partial<KnowledgeIndexOptions> = {}, documents: Record<string, string> = files) {
  const there = place(documents)
  const knowledge = there.open(options)
  const report = await knowledge.add([there.documents])
  const search = (question: string, searchOptions?: SearchOptions) => knowledge.search(question, searchOptions)
  return { there, knowledge, report, search }
}
const status = (result: { channels: readonly { channel: string; status: string }[] }) =>
  Object.fromEntries(result.channels.map((it) => [it.channel, it.status]))
const reasonOf = (result: { channels: readonly { channel: string; reason?: string }[] }, channel: string) =>
  result.channels.find((it) => it.channel === channel)?.reason

describe('Y11: a search', () => {
  test('answers with passages that can be cited: id, title, headings, text, place', async () => {
    const { search } = await knowing()
    const { hits } = await search('delivery of lamps')
    expect(hits[0]).toMatchObject({
      id: expect.stringMatching(/^lamps\.md#[0-9a-f]{12}$/),
      document: 'lamps.md',
      title: 'Lamps',
      headings: ['Lamps'],
      text: files['lamps.md'],
      start: 0,
      end: files['lamps.md'].length,
      exact: false,
    })
  })

  test('returns at most k hits, in the same order for every order of indexing', async () => {
    const equal = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`${n}.md`, `The same words, ${n}.`]))
    const { search } = await knowing({ embedder: letterEmbedder() }, equal)
    const backwards = place()
    const other = backwards.open({ embedder: letterEmbedder() })
    await other.add(
      Object.entries(equal)
        .toReversed()
        .map(([name, text]) => backwards.write(name, text)),
    )
    const first = await search('same words', { k: 5 })
    expect(first.hits).toHaveLength(5)
    expect((await search('same words', { k: 5 })).hits).toEqual(first.hits)
    expect((await other.search('same words', { k: 5 })).hits.map((it) => it.id)).toEqual(first.hits.map((it) => it.id))
  })

  test('respects its document filter in all channels', async () => {
    const { search } = await knowing({ embedder: letterEmbedder() })
    expect(names((await search('delivered', { filter: { under: 'guide/' } })).hits)).toEqual(['guide/chairs.md'])
    const { hits } = await search('delivered', { filter: { documents: ['lamps.md', 'desks.md'] } })
    expect(names(hits).toSorted()).toEqual(['desks.md', 'lamps.md'])
    expect((await search('delivered', { filter: { documents: [] } })).hits).toEqual([])
  })

  test('for nothing finds nothing and reports why', async () => {
    const { search } = await knowing({ embedder: letterEmbedder() })
    const result = await search(' ?! ')
    expect(status(result)).toEqual({ exact: 'off', keyword: 'off', vector: 'answered', rerank: 'off' })
    expect((await search('')).hits).toEqual([])
  })

  test('ends with its signal', async () => {
    const { search } = await knowing()
    await expect(search('lamps', { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    const cancel = new AbortController()
    const slow: Embedder = { id: 'slow', embed: () => Promise.withResolvers<never>().promise }
    const waiting = place(files).open({ embedder: slow, timeoutMs: 60_000 })
    const run = waiting.search('lamps', { signal: cancel.signal })
    cancel.abort(new Error('enough'))
    await expect(run).rejects.toThrow('enough')
  })
})

describe('B6: numbers and codes are found exactly', () => {
  const orders = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => [
      `o${n}.md`,
      `Order ORD-2024-${String(170 + n).padStart(5, '0')} is on its way.`,
    ]),
  )

  test('an order number comes first, regardless of the vectors, and is not confused with its neighbours', async () => {
    // An embedder for which the wrong documents are the nearest.
    const misled: Embedder = {
      id: 'misled',
      embed: async (texts) => ({
        vectors: texts.map((it) => Float32Array.of(it.includes('00183 ') && it.startsWith('Order') ? -1 : 1, 0.1)),
      }),
    }
    const { search } = await knowing({ embedder: misled }, orders)
    for (const question of [
      'ORD-2024-00183',
      'where is ord-2024-00183 now?',
      '订单ORD-2024-00183到哪了',
      'ORD202400183',
    ]) {
      const { hits } = await search(question)
      expect([hits[0]!.document, hits[0]!.exact, hits[1]?.exact]).toEqual(['o13.md', true, false])
    }
  })

  test('a code in many documents counts as a plain word: the relevant document is found', async () => {
    const notes = Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [`n${n}.md`, `Note ${n}: the attachment is in base64, the sum in sha256.`]),
    )
    const answer = 'Encoding an avatar: read the file, then call the encoder. The avatar becomes a line of base64.'
    const { search } = await knowing({}, { ...notes, 'avatar.md': answer })
    for (const question of ['how do I encode an avatar as base64', 'encode an avatar']) {
      const { hits } = await search(question)
      expect(hits[0]!.document).toBe('avatar.md')
    }
    const { hits } = await search('base64')
    expect(hits.every((it) => it.exact)).toBe(true)
  })

  test('a number that is nowhere is reported: the exact channel has no hits', async () => {
    const { search } = await knowing({}, orders)
    const { hits, channels } = await search('ORD-2024-99999')
    expect(channels[0]).toEqual({ channel: 'exact', status: 'answered', hits: 0 })
    expect(hits.some((it) => it.exact)).toBe(false)
  })
})

describe('Y11: a word that no document has', () => {
  test.each([
    ['delivry', 'lamps.md'],
    ['carirers', 'desks.md'],
    ['lanps', 'lamps.md'],
  ])('is replaced by the nearest one, which is reported: %s', async (word, document) => {
    const { search } = await knowing()
    const { hits, channels } = await search(word)
    expect(names(hits)).toContain(document)
    expect(reasonOf({ channels }, 'keyword')).toBe(`no document has "${word}"; similar words were searched`)
  })

  test.each(['zebra', 'ORD-2024-99999', 'xyz'])('finds nothing when nothing is near to it: %s', async (word) => {
    const { search } = await knowing()
    const { hits, channels } = await search(word)
    expect(hits).toEqual([])
    expect(reasonOf({ channels }, 'keyword')).toBeUndefined()
  })

  test('does not replace a known word', async () => {
    const { search } = await knowing({}, { 'a.md': 'The cart is here.', 'b.md': 'The card is here.' })
    expect(names((await search('card')).hits)).toEqual(['b.md'])
  })
})

describe('Y11: each channel fails alone', () => {
  test('the embedder fails: keyword search still answers, and the reason is reported, also while indexing', async () => {
    const down: Embedder = { id: 'down', embed: () => Promise.reject(new Error('connect ECONNREFUSED')) }
    const { search, report } = await knowing({ embedder: down })
    expect(report.vectors).toEqual({ embedded: 0, missing: 3, problem: 'connect ECONNREFUSED' })
    const result = await search('lamps')
    expect(status(result)).toMatchObject({ keyword: 'answered', vector: 'failed' })
    expect(reasonOf(result, 'vector')).toBe('connect ECONNREFUSED')
    expect(result.hits[0]!.document).toBe('lamps.md')
  })

  test('a text that the embedder refuses has no vector; the others have theirs', async () => {
    const letters = letterEmbedder()
    const picky: Embedder = {
      id: 'picky',
      async embed(texts, options) {
        const index = texts.findIndex((it) => it.includes('Desks'))
        if (index === -1) return letters.embed(texts, options)
        throw Object.assign(new Error('too long'), { details: { index } })
      },
    }
    const { search, report } = await knowing({ embedder: picky })
    expect(report.vectors).toEqual({ embedded: 2, missing: 1, problem: 'too long' })
    expect(reasonOf(await search('lamps'), 'vector')).toMatch(/1 passages have no vector/)
  })

  test('the embedder hangs, or answers nonsense', async () => {
    const { there, knowledge } = await knowing()
    await knowledge.close()
    const answers: [unknown, RegExp][] = [
      [Promise.withResolvers().promise, /no answer within 50 ms/],
      [Promise.resolve({ vectors: [] }), /0 vectors for 1 texts/],
      [Promise.resolve({ vectors: [Float32Array.of(Number.NaN, 1)] }), /not a number/],
      [Promise.resolve({ vectors: [Float32Array.of(0, 0)] }), /zero/],
    ]
    for (const [answer, reason] of answers) {
      const embedder = { id: 'odd', embed: () => answer } as Embedder
      const odd = there.open({ embedder, timeoutMs: 50 })
      const result = await odd.search('lamps')
      expect(reasonOf(result, 'vector')).toMatch(reason)
      expect(result.hits[0]!.document).toBe('lamps.md')
      await odd.close()
    }
  })

  test('the extension cannot be loaded: keyword search still answers', async () => {
    const { there } = await knowing({ embedder: letterEmbedder() })
    // A connection that cannot load extensions, as on a platform without the package.
    const database = new DatabaseSync(there.index)
    const vector = { embedder: 'letters', vector: new Float32Array(32).fill(1) }
    const answers = await reader(database).channels({
      any: ['lamps'],
      exact: [],
      words: [],
      vector,
      limit: 5,
      filter: {},
    })
    database.close()
    expect(names(answers.keyword!.passages)).toEqual(['lamps.md'])
    expect(answers.vector).toEqual({
      passages: [],
      failed: true,
      reason: expect.stringContaining('sqlite-vec is missing'),
    })
  })

  test('keyword search finds nothing and vectors do', async () => {
    const { search } = await knowing({ embedder: letterEmbedder() })
    const result = await search('Lampsaredeliveredintwodays')
    expect(result.channels.find((it) => it.channel === 'keyword')).toMatchObject({ status: 'answered', hits: 0 })
    expect(result.hits[0]).toMatchObject({ document: 'lamps.md', scores: { vector: expect.any(Number) } })
  })

  test('another embedder embeds everything anew, and the old vectors are deleted', async () => {
    const { there, knowledge } = await knowing({ embedder: letterEmbedder('one') })
    await knowledge.close()
    const two = letterEmbedder('two', 48)
    const changed = there.open({ embedder: two })
    const early = await changed.search('lamps')
    expect(reasonOf(early, 'vector')).toMatch(/3 passages have no vector yet/)
    expect((await changed.refresh()).vectors).toMatchObject({ embedded: 3, missing: 0 })
    expect(two.embedded).toHaveLength(3)
    expect(reasonOf(await changed.search('lamps'), 'vector')).toBeUndefined()
    await changed.close()
    const back = there.open({ embedder: letterEmbedder('one') })
    expect(reasonOf(await back.search('lamps'), 'vector')).toMatch(/3 passages have no vector yet/)
  })

  test('a reranker decides the order; one that fails or is late leaves it unchanged', async () => {
    const { there, search } = await knowing()
    const plain = (await search('delivered in two days')).hits.map((it) => it.id)
    const reversed = there.open({
      reranker: {
        id: 'reversed',
        rerank: async (_, texts) => ({ results: texts.map((_, n) => ({ index: n, score: n })) }),
      },
    })
    const judged = await reversed.search('delivered in two days')
    expect(judged.hits.map((it) => it.id)).toEqual(plain.toReversed())
    for (const rerank of [
      () => Promise.reject(new Error('overloaded')),
      () => Promise.withResolvers<never>().promise,
      async () => ({ results: [{ index: 0, score: 1 }] }),
    ]) {
      const failing = there.open({ reranker: { id: 'failing', rerank }, timeoutMs: 50 })
      const result = await failing.search('delivered in two days')
      expect(status(result).rerank).toBe('failed')
      expect(result.hits.map((it) => it.id)).toEqual(plain)
    }
  })
})

test('in a large index words of every passage neither decide the ranking nor are required', async () => {
  const sections = Array.from({ length: 5_200 }, (_, n) => `# Part ${n}\n\nthe common words of section${n}x`)
  const { search } = await knowing({}, { 'large.md': sections.join('\n\n') })
  const { hits, channels } = await search('the common words of section4711x')
  expect(hits.map((it) => it.text)).toEqual([sections[4_711]])
  expect(channels[1]).toMatchObject({ status: 'answered', hits: 1 })
  expect((await search('the common words')).hits).toHaveLength(8)
})

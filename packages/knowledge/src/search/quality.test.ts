import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { place } from '../helpers.fixture.ts'
import { evaluate } from './evaluate.ts'
import { type LabelledSet, labelledSet, sets } from './labelled.fixture.ts'

const K = 5

/** Plain FTS5: `unicode61`, with the words of the question joined by OR. */
async function plain({ documents, labels }: LabelledSet) {
  const database = new DatabaseSync(':memory:')
  database.exec('CREATE VIRTUAL TABLE plain USING fts5 (name UNINDEXED, body)')
  const insert = database.prepare('INSERT INTO plain (name, body) VALUES (?, ?)')
  for (const [name, text] of Object.entries(documents)) insert.run(name, text)
  const ask = database.prepare('SELECT name FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 50')
  const [quality] = await evaluate(
    labels,
    async (query) => {
      const words = query.match(/[\p{L}\p{N}]+/gu) ?? []
      return ask.all(words.map((it) => `"${it}"`).join(' OR ')).map((it) => it.name as string)
    },
    K,
  )
  return quality!
}

async function ours({ documents, labels }: LabelledSet) {
  const there = place(documents)
  const knowledge = there.open()
  const { added, problems } = await knowledge.add([there.documents])
  expect({ added, problems }).toEqual({ added: Object.keys(documents).length, problems: [] })
  const search = async (query: string) => (await knowledge.search(query, { k: 20 })).hits.map((it) => it.id)
  const [quality] = await evaluate(labels, search, K)
  return quality!
}

describe('Y11: labelled questions by keyword, compared with plain FTS5', () => {
  test.each(sets)('%s: enough documents and questions, and every label is a document', (set) => {
    const { documents, labels } = labelledSet(set)
    expect(Object.keys(documents).length).toBeGreaterThanOrEqual(60)
    expect(labels.length).toBeGreaterThanOrEqual(40)
    expect(labels.flatMap((it) => it.relevant).filter((it) => documents[it] === undefined)).toEqual([])
  })

  test.each([
    ['english', 0.92],
    ['chinese', 0.93],
    ['identifiers', 0.999],
  ] as const)('%s: better in recall, rank and gain', async (set, floor) => {
    const labelled = labelledSet(set)
    const [base, own] = [await plain(labelled), await ours(labelled)]
    expect(own.recall).toBeGreaterThan(base.recall)
    expect(own.mrr).toBeGreaterThan(base.mrr)
    expect(own.ndcg).toBeGreaterThan(base.ndcg)
    // Measured when the analyser was chosen; guards against regressions.
    expect(own.ndcg).toBeGreaterThan(floor)
  })
})

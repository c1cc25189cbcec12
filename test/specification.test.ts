// docs/specification.md and the titles of the tests agree.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

const rows = new Map(
  [...readFileSync(`${root}docs/specification.md`, 'utf8').matchAll(/^\| ([A-Z]\d+) \|.*\| (\w+) \|$/gm)].map(
    ([, id, status]) => [id!, status!] as const,
  ),
)
const files = globSync(
  ['packages/*/src/**/*.test.ts', 'packages/testing/src/conformance/**/*.ts', 'test/**/*.ts', 'examples/**/*.test.ts'],
  {
    cwd: root,
    exclude: (name) => name.includes('node_modules'),
  },
)

const titles = files.flatMap((file) =>
  [
    ...readFileSync(`${root}${file}`, 'utf8').matchAll(
      /(?:\b(?:test|it|describe)(?:\.\w+(?:<[^\n]*?>)?(?:\([^\n]*?\))?)*|\]\))\(\s*(['"`])(.*?)\1\s*,/g,
    ),
  ].map(([, , title]) => ({ file, title: title! })),
)

/** The ids at the head of a title: `Y7: …` or `Y7, B10: …`. */
const idsOf = (title: string): string[] => /^([A-Z]\d+(?:, [A-Z]\d+)*): \S/.exec(title)?.[1]?.split(', ') ?? []

const cited = titles.flatMap(({ file, title }) => idsOf(title).map((id) => ({ id, file, title })))

test('X12: every id in a test title is a row of the specification', () => {
  expect(rows.size).toBeGreaterThan(80)
  expect(cited.length).toBeGreaterThan(100)
  expect(cited.filter(({ id }) => !rows.has(id))).toEqual([])
})

test('X12: a title names rows of the specification only at its head, separated by commas', () => {
  const elsewhere = titles.filter(({ title }) => {
    const ids = [...title.matchAll(/\b[A-Z]\d+\b/g)].filter(([id]) => rows.has(id))
    return ids.length !== idsOf(title).length
  })
  expect(elsewhere).toEqual([])
})

test('X12: every row that is marked as done is cited by a test', () => {
  const ids = new Set(cited.map(({ id }) => id))
  expect([...rows].filter(([id, status]) => status === 'done' && !ids.has(id)).map(([id]) => id)).toEqual([])
})

test('X12: a row is done, partly done or planned', () => {
  expect([...new Set(rows.values())].toSorted()).toEqual(['done', 'partly', 'planned'])
})

import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

const DECLARED =
  /^export (?:declare |abstract |async )*(?:const|let|class|enum|interface|type|function\*?) ([A-Za-z_$][\w$]*)/gm
const LISTED = /^export (?:type )?\{([^}]*)\}/gm

/**
 * Where each exported name is declared. A list that exports a name again is not a declaration; one that renames it is.
 */
async function declarations(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const places = new Map<string, Set<string>>()
  const add = (name: string, file: string) => places.set(name, (places.get(name) ?? new Set()).add(file))
  for await (const file of glob('packages/*/src/**/*.ts', { cwd: root })) {
    if (/\.(test|fixture)\.ts$/.test(file)) continue
    const source = readFileSync(`${root}${file}`, 'utf8')
    for (const [, name] of source.matchAll(DECLARED)) add(name!, file)
    for (const [, list] of source.matchAll(LISTED))
      for (const [, name] of list!.matchAll(/\bas ([\w$]+)/g)) add(name!, file)
  }
  return places
}

describe('Y17: the names of the tree', () => {
  test('Y17: no two exported names are equal, whatever package they belong to', async () => {
    const places = await declarations()
    expect(places.size).toBeGreaterThan(1_000)
    const twice = [...places].filter(([, files]) => files.size > 1).map(([name, files]) => [name, ...files].join(' '))
    expect(twice).toEqual([])
  })
})

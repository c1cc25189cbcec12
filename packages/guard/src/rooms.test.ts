import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const source = import.meta.dirname
/** From the ground up: a room imports only from those before it, and from the files beside them. */
const ROOMS = ['paths', 'words', 'programs', 'walk', 'rules', 'check']

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((it) => it.endsWith('.ts'))
const ours = files.filter((it) => !/\.(test|fixture)\.ts$/.test(it))
const roomOf = (file: string): number => (file.includes('/') ? ROOMS.indexOf(file.split('/')[0]!) : -1)
const importsOf = (file: string): readonly string[] =>
  [...readFileSync(join(source, file), 'utf8').matchAll(/from '(\.[^']+)'/g)].map(([, path]) =>
    relative(source, resolve(source, dirname(file), path!)),
  )

describe('Y17: the folders of guard', () => {
  test('are known, and hold at most twelve files side by side', () => {
    const folders = Map.groupBy(ours, (it) => dirname(it))
    expect([...folders.keys()].filter((it) => it !== '.').toSorted()).toEqual(ROOMS.toSorted())
    for (const [folder, list] of folders) expect([folder, list.length <= 12]).toEqual([folder, true])
  })

  test('import one way', () => {
    const upward = ours
      .filter((it) => it !== 'index.ts')
      .flatMap((file) => importsOf(file).map((to) => ({ file, to })))
      .filter(({ file, to }) => roomOf(to) > roomOf(file))
    expect(upward.map(({ file, to }) => `${file} → ${to}`)).toEqual([])
    expect(ours.flatMap(importsOf).length).toBeGreaterThan(60)
  })
})

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { describe, expect, test } from 'vitest'
import rules, { packages, rooms } from './architecture.rules.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const read = async (): Promise<ICruiseResult> => {
  const { output } = await cruise(['packages'], rules)
  return output as ICruiseResult
}

describe('the borders between packages', () => {
  test('Y17: no import crosses one in the wrong direction, and the modules of every package have been read', async () => {
    const { modules, summary } = await read()
    expect(summary.violations.map((it) => `${it.rule.name}: ${it.from} → ${it.to}`)).toEqual([])
    for (const name of packages) {
      const count = modules.filter((it) => it.source.startsWith(`packages/${name}/src/`)).length
      expect(count, `modules read of ${name}`).toBeGreaterThan(3)
    }
    const arrows = modules.flatMap((it) => it.dependencies).filter((it) => it.resolved.startsWith('packages/'))
    expect(arrows.length).toBeGreaterThan(100)
  })

  test.each(Object.entries(rooms))(
    'Y17: every module of %s is in a room, and imports go from a room to those below it',
    async (name, expected) => {
      const { modules, summary } = await read()
      expect(summary.violations.filter((it) => it.rule.name.startsWith('imports-downwards'))).toEqual([])
      const of = new RegExp(String.raw`^packages/${name}/src/.*(?<!\.(test|fixture))\.ts$`)
      const found = modules.filter((it) => of.test(it.source))
      expect(found.length).toBeGreaterThan(60)
      const present = new Set(found.map((it) => it.source.split('/')[3]!))
      expect([...present].toSorted()).toEqual(expected.toSorted())
    },
  )

  test('Y17: every package has its rule', () => {
    const present = readdirSync(`${root}packages`).filter((it) => existsSync(`${root}packages/${it}/package.json`))
    expect(packages.toSorted()).toEqual(present.toSorted())
  })

  test('Y17: importing core loads neither zod nor ajv', () => {
    const script = `
      const loaded = []
      require('node:module').registerHooks({ resolve: (name, context, next) => { loaded.push(name); return next(name, context) } })
      import('@oxbow/core').then(() => console.log(JSON.stringify(loaded)))`
    const output = execFileSync(process.execPath, ['--conditions=oxbow-source', '-e', script], { cwd: root })
    const loaded = JSON.parse(output.toString()) as string[]
    expect(loaded.length).toBeGreaterThan(20)
    expect(loaded.filter((it) => /^(zod|ajv)/.test(it))).toEqual([])
  })
})

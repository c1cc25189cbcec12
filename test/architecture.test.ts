import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { describe, expect, test } from 'vitest'
import rules, { packages, roomsOfCore } from './architecture.rules.ts'

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

  test('Y17: every module of core is in a room, and imports go from a room to those below it', async () => {
    const { modules, summary } = await read()
    expect(summary.violations.filter((it) => it.rule.name.startsWith('core-imports-downwards'))).toEqual([])
    const core = modules.filter((it) => /^packages\/core\/src\/.*(?<!\.(test|fixture))\.ts$/.test(it.source))
    expect(core.length).toBeGreaterThan(60)
    const rooms = new Set(core.map((it) => it.source.split('/')[3]!))
    expect([...rooms].toSorted()).toEqual(roomsOfCore.toSorted())
  })

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

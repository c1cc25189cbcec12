import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Place, place } from '../cli.fixture.ts'
import type { Inspected } from '../inspect.ts'
import { STOCK_SERVER } from '../mcp.fixture.ts'

const READER = '---\nname: reader\ndescription: Reads.\ntools: [save_note]\nmode: explore\n---\nYou read notes.\n'

function configured(): Place {
  const it = place()
  mkdirSync(join(it.directory, 'helpers'))
  writeFileSync(join(it.directory, 'helpers/reader.md'), READER)
  writeFileSync(join(it.directory, 'stock.mjs'), STOCK_SERVER)
  const args = JSON.stringify([join(it.directory, 'stock.mjs')])
  const mcp = `[mcp.stock]\ncommand = "${process.execPath}"\nargs = ${args}\n`
  writeFileSync(
    join(it.directory, 'oxbow.toml'),
    `[agent]\nagents = "helpers"\ndeny = ["get_weather"]\nask = ["agent_spawn"]\n${mcp}`,
  )
  return it
}

const inspected = async (it: Place, name: string): Promise<Inspected> =>
  JSON.parse((await it.run(['agents', 'inspect', name, '--json'])).stdout)

// Each command is a process.
describe('H6: oxbow agents', { timeout: 60_000 }, () => {
  test('`agents list` shows the agent and all helpers, configured ones included, without creating a store', async () => {
    const it = configured()
    const { stdout, code } = await it.run(['agents', 'list', '--json'])
    const all = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(all.map(({ name, parent }) => [name, parent])).toEqual([
      ['assistant', undefined],
      ['summarizer', 'assistant'],
      ['kb-researcher', 'assistant'],
      ['reader', 'assistant'],
    ])
    expect(code).toBe(0)
    expect(existsSync(join(it.directory, '.oxbow'))).toBe(false)
  })

  test('`agents inspect` shows the prompt by source, and the gate’s decision and rule for each tool', async () => {
    const it = await inspected(configured(), 'assistant')
    expect(it.prompt.map(({ from, title }) => `${from}: ${title}`)).toEqual([
      'agent: instructions',
      'knowledge: Citations',
      'compaction: long conversations',
      'sub-agents: Sub-agents',
    ])
    expect(it.prompt[0]!.text).toContain('You are a helpful assistant.')
    const judged = Object.fromEntries(
      it.tools.map((tool) => [tool.name, `${tool.from}: ${tool.decision} by ${tool.rule}`]),
    )
    expect(judged).toMatchObject({
      get_weather: 'agent: deny by deny:get_weather',
      save_note: 'agent: allow by allow:save_note',
      retrieve: 'knowledge: allow by default:read',
      agent_spawn: 'sub-agents: ask by ask:agent_spawn',
      stock_level: expect.stringMatching(/^mcp: ask by /),
    })
    expect(it.middleware.map(({ name }) => name)).toEqual(['metrics', 'logging'])
    expect(it.agents.map(({ name }) => name)).toEqual(['summarizer', 'kb-researcher', 'reader'])
    expect(it).toMatchObject({ model: 'offline:offline', compacts: true, reviews: true, limits: { maxSteps: 10 } })
  })

  test('a helper is judged under its parents’ rules too', async () => {
    const it = await inspected(configured(), 'reader')
    expect(it.tools[0]).toMatchObject({ name: 'save_note', decision: 'deny', rule: 'mode:explore' })
    expect(it).toMatchObject({ parent: 'assistant', mode: 'explore', prompt: [{ text: 'You read notes.' }] })
  })

  test('the text output has a line per tool; an unknown name lists the known ones and exits with 2', async () => {
    const it = configured()
    const { stdout } = await it.run(['agents', 'inspect', 'assistant'])
    expect(stdout).toMatch(/^✗ get_weather +read +deny by deny:get_weather \(agent\)$/m)
    expect(stdout).toContain('— Citations (knowledge)')
    const { stderr, code } = await it.run(['agents', 'inspect', 'assistent'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('did you mean assistant?')])
  })
})

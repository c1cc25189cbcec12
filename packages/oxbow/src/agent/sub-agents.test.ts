import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mcp } from '@oxbow/harness'
import type { Reply, ScriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { STOCK_SERVER } from '../mcp.fixture.ts'
import { assistant, pages } from './agent.fixture.ts'

const OWN = ['calculate', 'get_current_time', 'get_weather', 'list_my_notes', 'save_note']
const KNOWLEDGE = ['retrieve']
const CONVERSATION = ['read_artifact', 'session_read', 'session_search']
const HELPERS = ['agent_list', 'agent_send', 'agent_spawn', 'task_cancel', 'task_output', 'wait_async_results']
const ALL = [...OWN, ...KNOWLEDGE, ...CONVERSATION, ...HELPERS].sort()

const spawn = (agent: string, task: string): Reply => ({ calls: [{ name: 'agent_spawn', arguments: { agent, task } }] })
const handOff = (conclusion: string): Reply => ({
  text: JSON.stringify({ status: 'done', conclusion, facts: [], open_questions: [] }),
})
const retrieve: Reply = { calls: [{ name: 'retrieve', arguments: { query: 'sessions' } }] }

/** The tools that each model receives. */
const toolsOf = ({ requests }: ScriptedModel, model: string): string[] =>
  requests
    .find((it) => it.model === model)!
    .tools.map((it) => it.function.name)
    .sort()

function folder(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-agents-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, 'agents'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  return directory
}

const helper = (name: string, more = ''): string => `---\nname: ${name}\ndescription: Helps.\n${more}---\nYou help.\n`

/** One run of everything: the agent, both helpers, and one from a folder. */
const everybody = {
  m: [spawn('kb-researcher', 'Look.'), spawn('summarizer', 'Shorten.'), spawn('further', 'Help.'), { text: 'Done.' }],
  'kb-researcher': [retrieve, handOff('They last.'), handOff('I helped.')],
  summarizer: [handOff('Short.')],
}

describe('Y14: each agent’s model sees exactly these tools', () => {
  test('without MCP servers there is no file, shell or web tool', async () => {
    const { engine, server } = await assistant({
      ...everybody,
      m: [spawn('kb-researcher', 'Look.'), spawn('summarizer', 'Shorten.'), { text: 'Done.' }],
    })
    expect((await engine.session({ user: 'zoe-7' }).run('Go.')).text).toBe('Done.')
    expect(toolsOf(server, 'm')).toEqual(ALL)
    // Pages of its own long results, and otherwise only retrieve.
    expect(toolsOf(server, 'kb-researcher')).toEqual(['retrieve'])
    expect(toolsOf(server, 'summarizer')).toEqual([])
    expect(server.requests.some((it) => JSON.stringify(it.body).includes('zoe-7'))).toBe(false)
  })

  test('MCP tools are offered to the main agent and to helpers that name them', async () => {
    const directory = folder({
      'stock.mjs': STOCK_SERVER,
      'agents/further.md': helper('further', 'tools: [stock_level, calculate]\nmodel: summarise\n'),
    })
    const servers = await mcp({ stock: { command: process.execPath, args: [join(directory, 'stock.mjs')] } })
    onTestFinished(() => servers.close())
    const { engine, server } = await assistant(
      { ...everybody, summarizer: [handOff('Short.'), handOff('Helped.')] },
      { capabilities: [servers], agents: join(directory, 'agents') },
    )
    await engine.session({ user: 'ann' }).run('Go.')
    expect(toolsOf(server, 'm')).toEqual([...ALL, 'stock_level'].sort())
    expect(toolsOf(server, 'kb-researcher')).toEqual(['retrieve'])
    expect(toolsOf(server, 'summarizer')).toEqual([])
    const further = server.requests.filter((it) => it.model === 'summarizer').at(-1)!
    expect(further.tools.map((it) => it.function.name).sort()).toEqual(['calculate', 'read_artifact', 'stock_level'])
  })
})

describe('Y13: a helper', () => {
  test('in a file cannot shadow one in code or a bundled one', async () => {
    for (const name of ['summarizer', 'kb-researcher']) {
      const agents = join(folder({ 'agents/mine.md': helper(name) }), 'agents')
      await expect(assistant({}, { agents, knowledge: await pages() })).rejects.toMatchObject({
        code: 'sub_agents_invalid',
        message: expect.stringMatching(
          new RegExp(`two agents are named ${name}: (in code|.*kb-researcher\\.md) and .*mine\\.md`),
        ),
      })
    }
  })

  test('in a file has its citations reviewed when it has retrieve', async () => {
    const { engine, server } = await assistant({
      m: [spawn('kb-researcher', 'Look.'), { text: 'Done.' }],
      'kb-researcher': [retrieve, handOff('They last [sessions.md#000000000000].'), handOff('They last.')],
    })
    await engine.session({ user: 'ann' }).run('Go.')
    const told = server.requests
      .filter((it) => it.model === 'kb-researcher')
      .at(-1)!
      .messages.at(-1)!.content
    expect(told).toContain('which was not retrieved')
  })
})

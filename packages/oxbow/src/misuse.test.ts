// What the functions of the library say to a program that calls them wrongly.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import {
  agent,
  compaction,
  defaultAgent,
  fileBlock,
  knowledge,
  mcp,
  memory,
  offline,
  openKnowledge,
  rememberedRules,
  remoteAgent,
  resultsOf,
  rowFilter,
  searchSessions,
  subAgents,
  testTools,
} from './index.ts'

const helper = agent({ name: 'helper', model: offline(), instructions: 'Help.' })
const { journal, files } = memory()
const search = { tenant: 'default', text: 'invoice' }
const rulesOf = (owner: never) => rememberedRules({ files }).list(owner)
const remote = { name: 'remote', description: 'Helps.', url: 'http://127.0.0.1:1' }

test.each<[string, string, (...given: never[]) => unknown, unknown[]]>([
  ['compaction_invalid', 'Did you mean "threshold"?', compaction, [{ journal, treshold: 0.5 }]],
  ['compaction_invalid', 'journal is required: pass that of the back end', compaction, [{}]],
  ['compaction_invalid', 'it must be an object', compaction, [undefined]],
  ['invalid_option', 'knowledge(): unknown field "pasages". Did you mean "passages"?', knowledge, [{ pasages: 3 }]],
  ['invalid_option', 'knowledge(): knowledge must be a knowledge base', knowledge, [{ knowledge: {} }]],
  ['options_invalid', 'openKnowledge(): path must be a text', openKnowledge, [{}]],
  ['options_invalid', 'openKnowledge(): unknown option "embeder"', openKnowledge, [{ path: 'x', embeder: {} }]],
  ['sub_agents_invalid', 'each of the list must be { agent, description }', subAgents, [[helper]]],
  ['sub_agents_invalid', 'give a list with at least one agent', subAgents, [helper]],
  [
    'sub_agents_invalid',
    'Did you mean "maxDepth"?',
    subAgents,
    [[{ agent: helper, description: 'Helps.' }], { maxdepth: 1 }],
  ],
  [
    'tool_invalid',
    'remoteAgent(): unknown field "header". Did you mean "headers"?',
    remoteAgent,
    [{ ...remote, header: {} }],
  ],
  [
    'tool_invalid',
    'remoteAgent(): url must be the address of a service',
    remoteAgent,
    [{ ...remote, url: 'localhost' }],
  ],
  ['mcp_invalid', 'mcp() has servers by name, for example { docs:', mcp, [{ url: 'http://127.0.0.1:1/mcp' }]],
  ['mcp_invalid', 'mcp() needs an object, for example { docs:', mcp, ['http://127.0.0.1:1/mcp']],
  [
    'mcp_invalid',
    'MCP server "docs": unknown field "alow". Did you mean "allow"?',
    mcp,
    [{ docs: { command: 'x', alow: [] } }],
  ],
  ['mcp_invalid', 'mcp(): unknown field "onnotice". Did you mean "onNotice"?', mcp, [{}, { onnotice: () => {} }]],
  [
    'invalid_option',
    'fileBlock: needs a path, a file: URL or bytes; got https:',
    fileBlock,
    [new URL('https://a.b/c.png')],
  ],
  ['invalid_option', 'fileBlock: needs a path, a file: URL or bytes; got number', fileBlock, [5]],
  ['invalid_option', 'Did you mean "mediaType"?', fileBlock, ['a.png', { mediatype: 'image/png' }]],
  [
    'invalid_option',
    'searchSessions(): unknown field "usr". Did you mean "user"?',
    searchSessions,
    [journal, { ...search, usr: 'ann' }],
  ],
  ['invalid_id', 'user must be 1 to 64', searchSessions, [journal, search]],
  ['invalid_option', 'rememberedRules(): user is required', rulesOf, [{}]],
  ['invalid_option', 'rememberedRules(): unknown field "usr"', rulesOf, [{ usr: 'ann' }]],
  ['invalid_option', 'resultsOf(await session.run(text), area)', resultsOf, [Promise.resolve(), helper]],
  ['row_columns_invalid', "the context of the tool's run", rowFilter, [undefined, { owner: 'by' }]],
  ['invalid_option', 'testTools(): needs a list of tools', testTools, [undefined]],
  ['invalid_option', 'testTools(): needs a list of tools', testTools, [[{ name: 'x' }]]],
  ['invalid_option', 'defaultAgent() needs { model, backend, knowledge }', defaultAgent, [{ model: offline() }]],
])('B16: %s: %s', async (code, message, call, given) => {
  const made = async () => call(...(given as never[]))
  await expect(made()).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
})

test('B16: fileBlock() reads a file: URL whose name has spaces, and keeps the name', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'oxbow-file-')), 'two words.txt')
  onTestFinished(() => rmSync(dirname(path), { recursive: true }))
  writeFileSync(path, 'Hi.')
  expect(await fileBlock(pathToFileURL(path))).toEqual({
    type: 'data',
    mediaType: 'text/plain',
    data: 'SGku',
    name: 'two words.txt',
  })
})

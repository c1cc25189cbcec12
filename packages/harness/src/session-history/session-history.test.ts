// What an agent finds in earlier conversations: its own user's sessions and nothing else.
import type { ScriptedRequest } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { type Bench, bench, saying } from '../compaction/compaction.fixture.ts'

/** The user names the tool call as `TOOL JSON`; anything else gets a plain answer. */
const obeys = (request: ScriptedRequest) => {
  const last = request.messages.at(-1)!
  const [, name, input] = /^(session_\w+) (\{.*\})$/.exec(String(last.content)) ?? []
  if (last.role === 'tool' || name === undefined) return saying(`Noted: ${String(last.content).slice(0, 40)}`, 100)
  return saying('', 100, { calls: [{ name, arguments: input }] })
}

const told = async ({ engine, asked }: Bench, order: string, user = 'ann', session = 's1'): Promise<string> => {
  await engine.session({ user, session }).run(order)
  return String(asked().at(-1)!.messages.at(-1)!.content)
}

test('H7: session_search finds it in this session, or in all of the same user, and never in another’s', async () => {
  const it = await bench(obeys, [])
  await it.engine.session({ user: 'ann', session: 's1' }).run('The code word is ultramarine.')
  await it.engine.session({ user: 'ann', session: 's2' }).run('Ultramarine is a colour.')
  await it.engine.session({ user: 'bob', session: 's1' }).run('My ultramarine secret.')
  const here = await told(it, 'session_search {"query":"ULTRAMARINE word"}')
  expect(here).toContain('The code word is ultramarine.')
  expect(here).toMatch(/^<data id="[0-9a-f]{16}" title="search results">/)
  expect(here).not.toContain('is a colour')
  const everywhere = await told(it, 'session_search {"query":"ultramarine","everywhere":true}')
  expect(everywhere).toContain('Ultramarine is a colour.')
  expect(everywhere).not.toContain('secret')
  // Of the search itself only the user's message is found.
  expect(await told(it, 'session_search {"query":"vermilion-x"}', 'bob')).toContain(', user: session_search {')
  expect((await told(it, 'session_search {"query":"vermilion-x"}', 'bob')).split('\n')).toHaveLength(4)
})

test('H7: session_read reads a turn, the user’s messages, or another session of the same user, page by page', async () => {
  const it = await bench(obeys, [])
  const long = `begin ${'word '.repeat(4_000)}end`
  await it.engine.session({ user: 'ann', session: 's1' }).run(long, { turnId: 'first' })
  await it.engine.session({ user: 'bob', session: 'bobs' }).run('Private.')
  const page = await told(it, 'session_read {"only":"user"}')
  expect(page).toContain('begin word')
  expect(page.length).toBeLessThan(9_000)
  const next = /session_read (\{[^}]*\})\]$/.exec(page)![1]!
  expect(await told(it, `session_read ${next}`)).toContain('word word')
  expect(await told(it, 'session_read {"turn":"first"}')).toContain('begin word')
  expect(await told(it, 'session_read {"session":"bobs"}')).toContain('No session "bobs"')
  expect(await told(it, 'session_read {"call":"call_none"}')).toContain('Nothing found')
  expect(await told(it, 'session_read {"session":"s1"}', 'ann', 's3')).toContain('begin word')
})

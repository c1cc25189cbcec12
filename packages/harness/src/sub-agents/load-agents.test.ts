import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { offline } from '@oxbow/models'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadAgents, subAgents } from '../index.ts'
import { worker } from './sub-agents.fixture.ts'

const model = offline()
const options = {
  models: { default: model, small: model },
  tools: [worker('grep', ['read']), worker('write', ['write'])],
}

function folder(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'oxbow-agents-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text)
  return path
}

const file = (matter: string, body = 'You read.'): string => `---\n${matter}\n---\n${body}\n`
const reader = 'name: reader\ndescription: Reads.'

describe('H10: agents in Markdown', () => {
  test('are read with all their settings', async () => {
    const path = folder({
      'reader.md': file(
        `${reader}\ntools: [grep, write]\nmodel: small\nmode: explore\nmaxSteps: 4\ndeny:\n  - write`,
        'You read.\n\n---\n\nAll of it.',
      ),
      'notes.txt': 'no agent',
    })
    const [it, ...rest] = await loadAgents(path, options)
    expect(rest).toEqual([])
    expect(it).toMatchObject({ description: 'Reads.', from: join(path, 'reader.md') })
    const { name, instructions, policy, limits, tools } = it!.agent
    expect({
      name,
      instructions,
      mode: policy.mode,
      deny: policy.deny.map((rule) => rule.text),
      maxSteps: limits.maxSteps,
    }).toEqual({
      name: 'reader',
      instructions: 'You read.\n\n---\n\nAll of it.',
      mode: 'explore',
      deny: ['write'],
      maxSteps: 4,
    })
    expect([...tools.keys()]).toEqual(['grep', 'write', 'read_artifact'])
  })

  test('that are not files, or are endless, are refused at once', async () => {
    const pipe = folder({})
    execFileSync('mkfifo', [join(pipe, 'x.md')])
    await expect(loadAgents(pipe, options)).rejects.toThrow(`${join(pipe, 'x.md')}: it is not a file`)
    const endless = folder({})
    symlinkSync('/dev/zero', join(endless, 'x.md'))
    await expect(loadAgents(endless, options)).rejects.toThrow('it is not a file')
    const large = folder({ 'x.md': '' })
    // Sparse: the whole file would not fit into memory.
    truncateSync(join(large, 'x.md'), 2 ** 34)
    await expect(loadAgents(large, options)).rejects.toThrow(/x\.md:1: it is longer than \d+ bytes/)
    const gone = folder({})
    symlinkSync(join(gone, 'nothing'), join(gone, 'x.md'))
    await expect(loadAgents(gone, options)).rejects.toMatchObject({ code: 'agent_file_invalid' })
  })

  test.each([
    ['an unknown key', file(`${reader}\ntool: [grep]`), ':4: unknown key "tool": did you mean tools?'],
    ['an unknown tool', file(`${reader}\ntools: [grap]`), ':4: unknown tool "grap": did you mean grep?'],
    ['an unknown model', file(`${reader}\nmodel: large`), ':4: unknown model "large"'],
    ['a name of an object property as model', file(`${reader}\nmodel: constructor`), ':4: unknown model "constructor"'],
    ['an unknown mode', file(`${reader}\nmode: plan`), ':4: unknown mode "plan"'],
    ['a negative number of steps', file(`${reader}\nmaxSteps: -1`), ':4: maxSteps must be a whole number above 0'],
    ['a rule that matches nothing', file(`${reader}\ntools: [grep]\ndeny: [rm]`), ':2: permission rule "rm"'],
    ['a key twice', file(`${reader}\nname: other`), ':4: Map keys must be unique'],
    ['no name', file('description: Reads.'), ':1: name is missing'],
    ['a list for a text', file('name: [a]\ndescription: Reads.'), ':2: name must be a text'],
    ['no instructions', file(reader, ' '), ':5: instructions are missing'],
    ['no front matter', 'You read.', ':1: it must begin with front matter'],
    ['invalid YAML', file(`${reader}\ntools: [grep`), ':5: '],
    ['aliases', file(`name: &a reader\ndescription: *a`), ':2: write values out'],
    ['a tag that would make objects', file(`${reader}\nmodel: !!js/function 'x'`), ':4: Unresolved tag'],
  ])('with %s fail the start, with file and line', async (_what, text, message) => {
    const path = folder({ 'reader.md': text })
    const failure = await loadAgents(path, options).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'agent_file_invalid' })
    expect(String((failure as Error).message)).toContain(`${join(path, 'reader.md')}${message}`)
  })

  test('two of one name fail the start, naming both; so does one already declared in code', async () => {
    const path = folder({ 'a.md': file(reader), 'b.md': file(reader) })
    await expect(loadAgents(path, options)).rejects.toThrow(
      `two agents are named reader: ${join(path, 'a.md')} and ${join(path, 'b.md')}`,
    )
    const [one] = await loadAgents(folder({ 'a.md': file(reader) }), options)
    const code = { description: 'Reads.', agent: one!.agent }
    expect(() => subAgents([code, one!])).toThrow(`two agents are named reader: in code and ${one!.from}`)
  })

  test('a missing folder fails the start', async () => {
    await expect(loadAgents('/no/such/folder', options)).rejects.toMatchObject({ code: 'agent_file_invalid' })
  })
})

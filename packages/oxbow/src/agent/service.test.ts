import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { place, scripted } from '../cli.fixture.ts'

// Each command is a separate process.
describe('the configured default agent', { timeout: 60_000 }, () => {
  test('Y7, Y15: the alias summarise writes the summaries, and is the model of the summarizer', async () => {
    const { server } = await scripted({
      scripts: {
        big: (request) =>
          String(request.messages.at(-1)?.content) === 'Shorten.'
            ? { calls: [{ name: 'agent_spawn', arguments: { agent: 'summarizer', task: 'Long text.' } }] }
            : { text: 'Yes.' },
        small: (request) =>
          String(request.messages[0]?.content).startsWith('You keep the notes')
            ? { text: '{"add":[{"kind":"fact","text":"All is well."}]}' }
            : { text: '{"status":"done","conclusion":"Short.","facts":[],"open_questions":[]}' },
      },
    })
    const here = place()
    const model = (name: string) =>
      `[models.${name}]\nprovider = "vllm"\nmodel = "${name}"\nbaseUrl = "${server.url}"\n`
    const aliases = '[models.aliases]\ndefault = "big"\nsummarise = "small"\n'
    const toml = `${model('big')}${model('small')}${aliases}[agent.compaction]\ntrigger = 5\nkeep = 2\n`
    writeFileSync(join(here.directory, 'oxbow.toml'), toml)
    for (const prompt of ['One.', 'Two.', 'Three.', 'Shorten.'])
      expect((await here.run(['run', '-p', prompt, '--session', 's'])).code).toBe(0)
    const asked = server.requests.filter((it) => it.model === 'small').map((it) => String(it.messages[0]!.content))
    expect(asked.some((it) => it.startsWith('You keep the notes'))).toBe(true)
    expect(asked.some((it) => it.startsWith('You summarise the text'))).toBe(true)
  })

  test('Y11: two documents of one name fail the service’s start, and oxbow chat flags an invented citation', async () => {
    const here = place()
    for (const folder of ['a', 'b']) {
      mkdirSync(join(here.directory, folder))
      writeFileSync(join(here.directory, folder, 'keys.md'), folder)
    }
    writeFileSync(join(here.directory, 'oxbow.toml'), '[knowledge]\npaths = ["a", "b"]\n')
    const failed = await here.run(['serve', '--port', '0'])
    expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining('Two documents are named keys.md') })

    writeFileSync(join(here.directory, 'oxbow.toml'), '[knowledge]\npaths = ["a"]\n')
    const { env } = await scripted({
      scripts: { '*': [{ text: 'It is a [keys.md#000000000000].' }, { text: 'I do not know.' }] },
    })
    const { stdout } = await here.run(['chat'], { env, input: 'What is it?\n' })
    expect(stdout).toContain(
      '! The answer cites passages that were not retrieved in this conversation: [keys.md#000000000000]. The model will answer again.',
    )
    expect(stdout.trimEnd()).toMatch(/I do not know\.$/)
  })
})

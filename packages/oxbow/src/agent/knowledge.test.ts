import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createModels } from '@oxbow/models'
import { loadConfig } from '@oxbow/server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type AgentKnowledge, openAgentKnowledge } from './knowledge.ts'

function folder(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-knowledge-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  return directory
}

interface Opened {
  readonly base: AgentKnowledge
  readonly notices: string[]
}

async function opened(
  toml: string,
  { directory = folder({}), environment = {} }: { directory?: string; environment?: Record<string, string> } = {},
): Promise<Opened> {
  const OXBOW_CONFIG = join(directory, 'oxbow.toml')
  writeFileSync(OXBOW_CONFIG, toml)
  const config = await loadConfig({ environment: { OXBOW_CONFIG, OXBOW_PROFILE: 'test', ...environment } })
  const notices: string[] = []
  const models = createModels(config.models, environment)
  const base = await openAgentKnowledge(config, models, (level, message) => notices.push(`${level} ${message}`))
  onTestFinished(() => base.close())
  return { base, notices }
}

const found = async ({ base }: Opened, question: string): Promise<string[]> => {
  const { hits } = await base.search(question, { k: 5, signal: AbortSignal.timeout(10_000) })
  return hits.map((it) => it.document)
}

/** Serves embeddings in both protocols and records the request paths. */
async function embedderService(): Promise<{ url: string; paths: string[] }> {
  const paths: string[] = []
  const server = createServer(async (request, response) => {
    paths.push(request.url ?? '')
    let text = ''
    for await (const chunk of request) text += chunk
    const { input } = JSON.parse(text) as { input: unknown[] }
    const embedding = [1, 2, 3]
    const data = request.url?.endsWith('/multimodal') ? { embedding } : input.map((_, index) => ({ index, embedding }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ data }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

describe('Y11: the knowledge of the default agent', () => {
  test('is what the configuration names; paths removed from it are no longer found', async () => {
    const directory = folder({ 'a/keys.md': '# Keys\n\nRotate keys.', 'b/oxen.md': '# Oxen\n\nOxen rotate, too.' })
    const settings = (name: string) => `[knowledge]\npaths = ["${join(directory, name)}"]\nindex = "${directory}/i.db"`
    const first = await opened(settings('a'), { directory })
    expect(await found(first, 'rotate')).toEqual(['keys.md'])
    expect(first.notices).toEqual(['info knowledge: 1 added, 0 changed, 0 renamed, 0 removed, 0 unchanged'])
    await first.base.close()
    expect(await found(await opened(settings('b'), { directory }), 'rotate')).toEqual(['oxen.md'])
  })

  test('is the pages about Oxbow without a setting', async () => {
    expect(await found(await opened(''), 'Which tools does the default agent have?')).toContain('tools-and-safety.md')
  })

  test('two documents of one name or a missing path fail the start', async () => {
    const directory = folder({ 'a/keys.md': 'One.', 'b/keys.md': 'Two.' })
    const paths = (...names: string[]) =>
      `[knowledge]\npaths = ${JSON.stringify(names.map((it) => join(directory, it)))}`
    await expect(opened(paths('a', 'b'))).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringMatching(
        /^knowledge\.paths: Two documents are named keys\.md: .*a\/keys\.md and .*b\/keys\.md/,
      ),
    })
    await expect(opened(paths('c'))).rejects.toMatchObject({ message: expect.stringContaining('No such file') })
  })

  test.each(['openai', 'ark-multimodal'])(
    'the alias embed selects the embedding model, in the protocol %s',
    async (protocol) => {
      const service = await embedderService()
      const toml =
        `[models.vectors]\nprovider = "vllm"\nmodel = "m"\nbaseUrl = "${service.url}"\n` +
        `[models.aliases]\nembed = "vectors"\n[knowledge.embedder]\nprotocol = "${protocol}"`
      const { base } = await opened(toml)
      const { channels } = await base.search('tools', { k: 5, signal: AbortSignal.timeout(10_000) })
      expect(channels.find((it) => it.channel === 'vector')?.status).toBe('answered')
      const path = protocol === 'openai' ? '/embeddings' : '/embeddings/multimodal'
      expect(new Set(service.paths)).toEqual(new Set([path]))
    },
  )

  test('without the embedding model, search falls back to keywords and the log reports it', async () => {
    const toml =
      '[models.vectors]\nprovider = "vllm"\nmodel = "m"\nbaseUrl = "http://127.0.0.1:9"\n' +
      '[models.aliases]\nembed = "vectors"'
    const it = await opened(toml)
    await it.base.start()
    expect(it.notices.at(-1)).toMatch(/^warn knowledge: \d+ passages have no vector/)
    expect(await found(it, 'sessions')).toContain('getting-started.md')
  })

  test('the bundled English model finds passages that share no word with the question', async () => {
    const directory = folder({
      'docs/account.md': '# Login\nTo recover access to your account, choose new credentials on the sign-in page.',
      'docs/garden.md': '# Roses\nWater the flowers each morning before the sun is high.',
    })
    const toml = (protocol: string): string =>
      `[knowledge]\npaths = [${JSON.stringify(join(directory, 'docs'))}]\n[knowledge.embedder]\nprotocol = "${protocol}"`
    const words = await opened(toml('openai'), { directory })
    await words.base.start()
    expect(await found(words, 'forgotten password')).toEqual([])
    const meaning = await opened(toml('offline-english'), { directory })
    await meaning.base.start()
    expect((await found(meaning, 'forgotten password'))[0]).toBe('account.md')
  })
})

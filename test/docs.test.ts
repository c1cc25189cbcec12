// Runs every code sample of the documentation unchanged.
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '@oxbow/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const main = join(root, 'packages/oxbow/src/main.ts')

interface Sample {
  readonly name: string
  readonly language: string
  readonly code: string
  /** The expected output, from a `text` block that follows. */
  readonly prints: string | undefined
}

function samplesOf(page: string): Sample[] {
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
  return blocks.flatMap(([whole, language, code], n) => {
    if (language === 'text') return []
    const next = blocks[n + 1]
    const end = blocks[n]!.index + whole!.length
    const follows = next?.[1] === 'text' && text.slice(end, next.index).trim() === ''
    const line = text.slice(0, blocks[n]!.index).split('\n').length
    return [
      { name: `${page}:${line}`, language: language!, code: code!, prints: follows ? next[2]!.trim() : undefined },
    ]
  })
}

const pages = [
  'README.md',
  'README.zh-CN.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((it) => it.endsWith('.md') && !/^(decisions|reference\/api)\/|^reference\/http-api\.md$/.test(it))
    .map((it) => `docs/${it}`),
]
const samples = pages.flatMap(samplesOf)
const inLanguage = (language: string) => samples.filter((it) => it.language === language)
/** The tutorial's samples belong together and have their own test next to the example. */
const shell = inLanguage('sh').filter((it) => !it.name.startsWith('docs/guides/tutorial-approvals.md'))

function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH ?? '', HOME: cwd, NO_COLOR: '1' }
    execFile(command, args, { cwd, env, timeout: 60_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`exit ${error.code ?? error.signal}\n${stdout}\n${stderr}`))
    })
  })
}

describe('TypeScript', () => {
  test.each(inLanguage('ts'))('$name runs', { timeout: 60_000 }, async ({ code, prints }) => {
    // Next to the packages, so that their names resolve.
    const directory = mkdtempSync(join(root, 'node_modules/.oxbow-docs-'))
    try {
      writeFileSync(join(directory, 'sample.ts'), code)
      // Node does not strip types below node_modules: the sample is imported from its own text.
      const stripped = `import { stripTypeScriptTypes } from 'node:module'; import { readFileSync, writeFileSync } from 'node:fs'; writeFileSync('sample.mjs', stripTypeScriptTypes(readFileSync('sample.ts', 'utf8'))); await import(${JSON.stringify(join(directory, 'sample.mjs'))})`
      const output = await run(
        process.execPath,
        ['--conditions=oxbow-source', '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', stripped],
        directory,
      )
      // Without a claim it is enough that it runs.
      expect(prints === undefined ? undefined : output.trim()).toBe(prints)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('samples hold under every strict option of the compiler', { timeout: 60_000 }, async () => {
    const directory = mkdtempSync(join(root, 'node_modules/.oxbow-docs-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const files = inLanguage('ts').map(({ name, code }) => {
      const file = `${name.replaceAll(/[^a-zA-Z0-9]+/g, '-')}.ts`
      writeFileSync(join(directory, file), code)
      return file
    })
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { noUnusedLocals: true, noUnusedParameters: true },
      files,
      include: [],
    }
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    expect(await run(process.execPath, [compiler, '-p', directory], directory)).toBe('')
  })

  test('the sample of both READMEs is the file that `npm run example:area` runs', () => {
    const example = readFileSync(join(root, 'examples/area/main.ts'), 'utf8')
    const readmes = inLanguage('ts').filter(({ name }) => name.startsWith('README'))
    expect(readmes.map(({ code }) => code)).toEqual([example, example])
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    expect(scripts['example:area']).toContain('examples/area/main.ts')
  })

  test('there are samples', () => {
    expect(inLanguage('ts').length).toBeGreaterThan(5)
  })
})

describe('shell commands, against a running service', () => {
  let directory: string
  let port: number
  let stop: () => Promise<void>

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'oxbow-docs-'))
    port = await freePort()
    const child = spawn(process.execPath, ['--conditions=oxbow-source', main, 'serve', '--port', String(port)], {
      cwd: directory,
      stdio: 'ignore',
    })
    stop = async () => {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
      rmSync(directory, { recursive: true })
    }
    await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, { deadlineMs: 15_000 })
  })
  afterAll(() => stop())

  test.each(shell.filter((it) => it.code.includes('localhost:8080')))('$name runs', async ({ code, prints }) => {
    const strict = code.replaceAll('curl -s', 'curl -fs').replaceAll('localhost:8080', `127.0.0.1:${port}`)
    const output = await run('bash', ['-ec', strict], directory)
    expect(output.length).toBeGreaterThan(0)
    expect(output).not.toContain('"error"')
    if (prints !== undefined) expect(output.trim()).toBe(prints)
  })

  test('every shell sample is one of them, or installs, or is the command line itself', () => {
    const others = shell.filter((it) => !it.code.includes('localhost:8080'))
    expect(others.filter((it) => !/^(npm|npx oxbow|oxbow|git clone)/.test(it.code)).map((it) => it.name)).toEqual([])
  })
})

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

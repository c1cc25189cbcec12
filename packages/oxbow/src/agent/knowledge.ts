// The knowledge base of the default agent: the configured documents, indexed next to the store.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { OxbowError } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import type { Searchable } from '@oxbow/harness'
import {
  type IndexProgress,
  type IndexReport,
  type Knowledge,
  offlineEnglish,
  openKnowledge,
  uniqueNames,
} from '@oxbow/knowledge'
import type { Models } from '@oxbow/models'
import type { Config } from '@oxbow/server'
import { packageFolder } from '../package-folder.ts'

/** Bundled pages about Oxbow. */
const OWN_PAGES = packageFolder('knowledge')

/** How long a search waits for the index to be up to date before it searches the present one. */
const PATIENCE_MS = 10_000
/** How often progress is reported. */
const TELL_EVERY_MS = 5_000

export type KnowledgeNotice = (level: 'info' | 'warn', message: string) => void

export interface AgentKnowledge extends Searchable {
  /**
   * Updates the index, once; a search starts it as well. Never rejects: problems are reported as notices.
   */
  start(): Promise<void>
  close(): Promise<void>
}

/**
 * Checks the documents' names without reading or opening anything yet.
 *
 * @throws OxbowError `config_invalid` for a missing path or two documents of one name; `model_config`
 */
export async function openAgentKnowledge(
  { knowledge, store, models: { aliases = {} } }: Config,
  models: Models,
  notice: KnowledgeNotice,
): Promise<AgentKnowledge> {
  const paths = (knowledge.paths ?? [OWN_PAGES]).map((it) => resolve(it))
  await uniqueNames(paths).catch((cause: Error) => {
    throw new OxbowError('config_invalid', `knowledge.paths: ${cause.message}`, { cause })
  })
  const purpose = (alias: string): string | undefined => (Object.hasOwn(aliases, alias) ? alias : undefined)
  const { model = purpose('embed'), protocol, dimensions } = knowledge.embedder
  const offline = protocol === 'offline-english' ? offlineEnglish() : undefined
  const embedder =
    protocol === 'offline-english' || model === undefined ? offline : models.embedder(model, { protocol, dimensions })
  const reranker = knowledge.reranker ?? purpose('rerank')
  const options = {
    ...defined({ embedder }),
    ...(reranker !== undefined && { reranker: models.reranker(reranker) }),
  }
  const temporary =
    knowledge.index === undefined && store.path === ':memory:'
      ? mkdtempSync(join(tmpdir(), 'oxbow-knowledge-'))
      : undefined
  const path = knowledge.index ?? join(temporary ?? dirname(store.path), 'agent-knowledge.db')

  let base: Knowledge | undefined
  let started: Promise<void> | undefined
  let closed = false
  const opened = (): Knowledge => {
    base ??= openKnowledge({ path, ...options })
    return base
  }
  const start = (): Promise<void> => {
    started ??= bringUpToDate(opened(), paths, notice).catch((error: Error) => {
      // Stopping is not a failure.
      if (!closed) notice('warn', error.message)
    })
    return started
  }
  return {
    start,
    async search(question, wanted) {
      await Promise.race([start(), delay(PATIENCE_MS, undefined, { signal: wanted.signal, ref: false })])
      return opened().search(question, wanted)
    },
    async close() {
      closed = true
      await base?.close()
      await offline?.close()
      if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
    },
  }
}

/** The configuration decides: documents outside its paths are removed from the index. */
async function bringUpToDate(base: Knowledge, paths: readonly string[], notice: KnowledgeNotice): Promise<void> {
  const stale = (await base.roots()).filter((it) => !paths.includes(it))
  if (stale.length > 0) await base.remove(stale)
  let told = performance.now()
  const onProgress = ({ phase, done, total }: IndexProgress): void => {
    if (performance.now() - told < TELL_EVERY_MS) return
    told = performance.now()
    notice('info', `knowledge: ${phase === 'reading' ? 'read' : 'embedded'} ${done} of ${total}`)
  }
  tell(await base.add(paths, { onProgress }), notice)
}

function tell(report: IndexReport, notice: KnowledgeNotice): void {
  const { added, changed, renamed, removed, unchanged, problems, vectors } = report
  notice(
    'info',
    `knowledge: ${added} added, ${changed} changed, ${renamed} renamed, ${removed} removed, ${unchanged} unchanged`,
  )
  for (const it of problems) notice('warn', `knowledge: skipped ${it.path}: ${it.message}`)
  if (vectors?.problem !== undefined)
    notice('warn', `knowledge: ${vectors.missing} passages have no vector: ${vectors.problem}`)
}

// How far the token estimate is from the counts of tokenizers and providers, by kind of text. To print the figures for
// the documentation: CALIBRATION=1 npx vitest run packages/models/src/accounting/calibration.test.ts
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { estimateTokens } from '@oxbow/core'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, test } from 'vitest'
import { anthropicAt, ask, modelAt, serve, sse } from '../asking.fixture.ts'
import { estimateUsage } from './estimate.ts'

const root = join(import.meta.dirname, '../../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const rows = Array.from({ length: 50 }, (_, n) => ({
  id: 10_000 + n * 7,
  name: `Customer ${n}`,
  amount: Number((n * 37.13).toFixed(2)),
  paid: n % 2 === 0,
  createdAt: new Date(1.7e12 + n * 86_400_000).toISOString(),
  email: `user${n}@example.com`,
}))
const hours = { hourly: { time: rows.map((it) => it.createdAt), temperature_2m: rows.map((it) => it.amount / 50) } }

const texts: Readonly<Record<string, readonly string[]>> = {
  English: [
    'ARCHITECTURE.md',
    'docs/reference/http.md',
    'docs/concepts/durability.md',
    'docs/guides/approvals.md',
    'docs/deploy/identity.md',
  ].map(read),
  Chinese: [
    '人工智能代理在执行任务之前需要明确权限。系统会把每一步操作写入日志，管理员可以随时查看谁在什么时候做了什么。如果网络中断，会话会在重新连接之后继续，不会重复执行已经完成的操作。',
    '今天下午三点我们在会议室讨论下个季度的采购计划，请各部门提前准备好预算表和供应商名单。客户反馈说订单状态更新太慢，希望能够实时看到物流信息。',
    '数据库的主键不能重复，外键用于保证引用完整性。索引能够提高查询速度，但是会增加写入的开销。在设计接口时应该返回明确的错误代码，并且告诉用户应该怎么做。',
  ],
  code: [
    'core/src/engine/engine.ts',
    'core/src/state/evolve.ts',
    'server/src/service.ts',
    'server/src/config/config.ts',
  ].map((it) => read(`packages/${it}`)),
  JSON: [JSON.stringify(rows), JSON.stringify(rows, null, 2), JSON.stringify(hours), read('package.json')],
}

const percent = (error: number): string => `${error >= 0 ? '+' : ''}${(error * 100).toFixed(0)} %`
const show = (what: string, errors: readonly number[]): void => {
  if (process.env.CALIBRATION) console.log(`${what}: ${errors.map(percent).join(' ')}`)
}

test.each(Object.entries(texts))('%s is within a fifth of the o200k_base count', (kind, all) => {
  const errors = all.map((text) => estimateTokens(text) / encode(text).length - 1)
  show(kind, errors)
  for (const error of errors) expect(Math.abs(error)).toBeLessThan(0.2)
})

const streams = join(root, '../shared/cases/streams')

/** Recorded answers whose whole text was shown, so that the token count can be compared with it. */
const recorded: [string, 'chat' | 'messages'][] = [
  ['openai/chat-openai-text', 'chat'],
  ['deepseek/chat-deepseek-text', 'chat'],
  ['deepseek/chat-deepseek-reasoning', 'chat'],
  ['alibaba/alibaba-text', 'chat'],
  ['groq/groq-text', 'chat'],
  ['mistral/mistral-text', 'chat'],
  ['anthropic/anthropic-text', 'messages'],
]

describe.skipIf(!existsSync(streams))('recorded answers (skipped without the recordings)', () => {
  test.each(recorded)('%s is within a third of the provider’s count', async (name, format) => {
    const lines = readFileSync(join(streams, `${name}.chunks.txt`), 'utf8')
      .trimEnd()
      .split('\n')
    const server = await serve({
      raw: sse(
        lines.map((line) => `data: ${line}\n\n`),
        format === 'chat' ? undefined : '',
      ),
    })
    const { reply } = await ask((format === 'chat' ? modelAt : anthropicAt)(server))
    expect(reply.usage.estimated).toBe(false)
    const { outputTokens } = estimateUsage({ system: '', messages: [], tools: [] }, reply.blocks)
    const error = outputTokens / reply.usage.outputTokens - 1
    show(`${name} (${reply.usage.outputTokens})`, [error])
    // In a short answer a word or two of framing weighs a lot.
    expect(Math.abs(outputTokens - reply.usage.outputTokens)).toBeLessThan(Math.max(8, reply.usage.outputTokens / 3))
  })
})

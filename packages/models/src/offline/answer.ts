// What the offline model says.
import type { ToolSpec } from '@oxbow/core'
import { isChinese } from './words.ts'

export interface ToldResult {
  readonly tool: string
  readonly ok: boolean
  readonly text: string
}

/** Plain sentences from the results of tools. */
export function answerFrom(question: string, results: readonly ToldResult[]): string {
  const chinese = isChinese(question)
  const sentences = results.map(({ tool, ok, text }) => {
    const said = closed(clip(text, 1_500), chinese)
    if (chinese) return ok ? `工具 ${tool} 的结果：${said}` : `工具 ${tool} 没有成功：${said}`
    return ok ? `The tool ${tool} says: ${said}` : `The tool ${tool} did not succeed: ${said}`
  })
  const signature = chinese
    ? '（以上由 Oxbow 离线模型整理，它不是语言模型。）'
    : "(Put together by Oxbow's offline model, which is no language model.)"
  return [...sentences, signature].join(chinese ? '' : ' ')
}

/** Says what it is, what tools there are, and how to get a real model. */
export function introduce(question: string, tools: readonly ToolSpec[]): string {
  const chinese = isChinese(question)
  const shown = tools.slice(0, 8).map(({ name, description }) => {
    const about = description
      .split(/(?<=[.。])(?=\s|$)|\n/)[0]!
      .replace(/[.。]\s*$/, '')
      .trim()
    return about === '' ? `- ${name}` : `- ${name}: ${clip(about, 100)}`
  })
  if (tools.length > shown.length)
    shown.push(chinese ? `- 还有 ${tools.length - shown.length} 个` : `- and ${tools.length - shown.length} more`)
  if (chinese) {
    return [
      '你好！我是 Oxbow 的离线模型：我不是语言模型，只会按问题里的词语挑选工具。',
      tools.length === 0 ? '这里没有可用的工具。' : `这个问题我没有找到合适的工具。现有的工具：\n${shown.join('\n')}`,
      '想使用真正的模型，请设置 OXBOW_MODEL=openai:gpt-5-mini 和 OPENAI_API_KEY（或其他服务商），然后重新启动。',
    ].join('\n')
  }
  return [
    "Hello! I am Oxbow's offline model. I am no language model: I only pick tools by the words of a question.",
    tools.length === 0
      ? 'There are no tools here.'
      : `I found no tool that fits this one. The tools here are:\n${shown.join('\n')}`,
    'For a real model, set OXBOW_MODEL=openai:gpt-5-mini and OPENAI_API_KEY (or another provider), and start again.',
  ].join('\n')
}

const clip = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length)}…`)

const closed = (text: string, chinese: boolean): string =>
  /[.!?。\uff01\uff1f…}\]]$/.test(text.trim()) ? text.trim() : `${text.trim()}${chinese ? '。' : '.'}`

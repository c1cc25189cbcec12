// LangGraph: a model node and a tool node without a checkpointer, streamed in the mode "messages".
import { type AIMessageChunk, SystemMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI, ChatOpenAICompletions } from '@langchain/openai'
import { z } from 'zod'
import { INSTRUCTIONS, lookup, QUESTION, type StartContender } from '../contender.ts'

const tools = [
  tool(async ({ word }) => lookup(word), {
    name: 'lookup',
    description: 'Looks a word up.',
    schema: z.object({ word: z.string() }),
  }),
]

/**
 * LangChain sees no tool calls in a stream that names no role, and the scripted server, as some real ones, names none.
 */
class OfAssistant extends ChatOpenAICompletions {
  protected override _convertCompletionsDeltaToBaseMessageChunk(
    ...[delta, response, role = 'assistant']: Parameters<
      ChatOpenAICompletions['_convertCompletionsDeltaToBaseMessageChunk']
    >
  ) {
    return super._convertCompletionsDeltaToBaseMessageChunk(delta, response, role)
  }
}

export const start: StartContender = async ({ url }) => {
  const settings = { model: 'bench', apiKey: 'none', configuration: { baseURL: url } }
  const model = new ChatOpenAI({ ...settings, completions: new OfAssistant(settings) }).bindTools(tools)
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('agent', async ({ messages }) => ({
      messages: [await model.invoke([new SystemMessage(INSTRUCTIONS), ...messages])],
    }))
    .addNode('tools', new ToolNode(tools))
    .addEdge(START, 'agent')
    .addConditionalEdges('agent', toolsCondition)
    .addEdge('tools', 'agent')
    .compile()
  return {
    async turn() {
      const startedAt = performance.now()
      let firstTextMs = 0
      let characters = 0
      const stream = await graph.stream({ messages: [{ role: 'user', content: QUESTION }] }, { streamMode: 'messages' })
      for await (const [message, { langgraph_node: node }] of stream) {
        const text = node === 'agent' ? (message as AIMessageChunk).text : ''
        if (text === '') continue
        firstTextMs ||= performance.now() - startedAt
        characters += text.length
      }
      return { firstTextMs, characters }
    },
    async close() {},
  }
}

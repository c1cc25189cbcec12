// The site: pages of docs/ and of the repository, built by `npm run docs`. A dead link fails the build.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type DefaultTheme, defineConfig, type MarkdownOptions } from 'vitepress'

const root = join(import.meta.dirname, '../..')

/** Source files that pages link to. They are copied as text, because the site has no pages for them. */
const sources = new Set<string>()

/** Links in the sources are relative to files of the repository; on the site docs/ is the root. */
const siteLinks: MarkdownOptions['config'] = (md) => {
  md.core.ruler.push('site-links', ({ tokens, env }) => {
    const { path, realPath = path } = env as { path: string; realPath?: string }
    for (const token of tokens.flatMap((it) => it.children ?? [])) {
      const href = token.attrGet('href')
      if (token.type !== 'link_open' || href === null || /^(\w+:|#|\/)/.test(href)) continue
      const [target = '', anchor] = href.split('#')
      const file = relative(root, resolve(dirname(realPath), target))
      const at = join(root, file)
      if (!existsSync(at) || statSync(at).isDirectory())
        throw new Error(`Dead link in ${relative(root, realPath)}: ${href}. Link to a file that exists.`)
      if (file.endsWith('.md')) {
        token.attrSet('href', `/${file.replace(/^docs\//, '')}${anchor === undefined ? '' : `#${anchor}`}`)
        continue
      }
      sources.add(file)
      token.attrSet('href', `/source/${file}.txt`)
      token.attrSet('target', '_blank')
    }
  })
}

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link })
const titleOf = (file: string): string => /^# (.*)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? file
const pagesIn = (folder: string): DefaultTheme.SidebarItem[] => {
  const at = join(root, 'docs', folder)
  const files = existsSync(at) ? readdirSync(at).filter((it) => it.endsWith('.md') && it !== 'README.md') : []
  return files.toSorted().map((file) => page(titleOf(join(at, file)), `/${folder}/${file.slice(0, -3)}`))
}

const sidebar: DefaultTheme.SidebarItem[] = [
  {
    text: 'Get started',
    items: [
      page('In a program', '/start/library'),
      page('As a service', '/start/service'),
      page('In a terminal', '/start/terminal'),
    ],
  },
  {
    text: 'Guides',
    items: [
      page('Agents, tools and turns', '/guides/library'),
      page('Models', '/guides/models'),
      page('Choosing an agent', '/guides/choosing-an-agent'),
      page('Images and files', '/guides/files-and-images'),
      page('A web page with useChat', '/examples/use-chat/README'),
      page('Approvals', '/guides/approvals'),
      page('Tutorial: from question to approved action', '/guides/tutorial-approvals'),
      page('Knowledge', '/guides/knowledge'),
      page('MCP', '/guides/mcp'),
      page('Sub-agents', '/guides/sub-agents'),
      page('Durable tools', '/guides/durable-tools'),
      page('Long conversations', '/guides/long-conversations'),
      page('Your own back end', '/guides/back-ends'),
      page('Testing your agents', '/packages/testing/README'),
    ],
  },
  {
    text: 'Concepts',
    items: [
      page('Architecture', '/ARCHITECTURE'),
      page('Durability', '/concepts/durability'),
      page('Permissions', '/concepts/permissions'),
      page('Glossary', '/concepts/glossary'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Command line', '/reference/cli'),
      page('Configuration', '/reference/configuration'),
      page('The HTTP service', '/reference/http'),
      page('HTTP API', '/reference/http-api'),
      page('Tasks', '/reference/tasks'),
      page('Agent Protocol', '/reference/agent-protocol'),
      page('Events', '/reference/events'),
      page('Errors', '/reference/errors'),
      page('The default agent', '/reference/default-agent'),
      { text: 'API', collapsed: true, items: pagesIn('reference/api') },
      page('Specification', '/specification'),
    ],
  },
  { text: 'Deploy', items: [page('Deployment', '/deploy/deployment'), page('Identity', '/deploy/identity')] },
  {
    text: 'Compare and migrate',
    items: [
      page('Comparison', '/compare/comparison'),
      page('Benchmarks', '/compare/benchmarks'),
      page('From Yoke', '/compare/from-yoke'),
      page('From AgentScope', '/compare/from-agentscope'),
      page('From LangGraph', '/compare/from-langgraph'),
      page('From Mastra', '/compare/from-mastra'),
      page('From the AI SDK', '/compare/from-ai-sdk'),
    ],
  },
  {
    text: 'Project',
    items: [
      page('Changelog', '/CHANGELOG'),
      page('Contributing', '/CONTRIBUTING'),
      page('Security', '/SECURITY'),
      { text: 'Decisions', collapsed: true, link: '/decisions/README', items: pagesIn('decisions') },
    ],
  },
]

export default defineConfig({
  title: 'Oxbow',
  description: 'An agent harness in TypeScript: durable turns, permissions on every call, one journal per session.',
  lang: 'en',
  srcDir: '..',
  srcExclude: [
    'bench/**',
    'test/**',
    'scripts/**',
    'packages/!(testing)/**',
    'packages/testing/src/**',
    'examples/*/policies/**',
    'AGENTS.md',
    'README*.md',
  ],
  rewrites: { 'docs/:page*': ':page*' },
  cleanUrls: true,
  markdown: { config: siteLinks },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Get started', link: '/start/library' },
      { text: 'Guides', link: '/guides/library' },
      { text: 'Reference', link: '/reference/configuration' },
      { text: 'Compare', link: '/compare/comparison' },
    ],
    sidebar,
  },
  buildEnd({ outDir }) {
    for (const file of sources) {
      const target = join(outDir, 'source', `${file}.txt`)
      mkdirSync(dirname(target), { recursive: true })
      copyFileSync(join(root, file), target)
    }
  },
})

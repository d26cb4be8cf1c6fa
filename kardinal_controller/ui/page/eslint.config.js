import js from "@eslint/js";
import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["building/**", "built/**", "node_modules/**"] },
  js.configs.recommended,
  ...tseslint.configs.strict,
  { ...reactHooks.configs.flat["recommended-latest"] },
  { ...jsxA11y.flatConfigs.recommended, files: ["src/**/*.tsx"] },
  {
    files: ["src/**/*.{ts,tsx}"],
    rules: {
      eqeqeq: "error",
      "max-lines": ["error", { max: 300 }],
      "no-restricted-syntax": [
        "error",
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: "Text of the API is rendered as text.",
        },
        {
          selector: "JSXAttribute[name.name='href'] > JSXExpressionContainer",
          message: "Links go through parts/OutLink or the router, which check the scheme.",
        },
      ],
    },
  },
  { files: ["src/parts/OutLink.tsx"], rules: { "no-restricted-syntax": "off" } },
  { files: ["src/api/types.ts"], rules: { "max-lines": "off" } },
  {
    files: ["tools/*.mjs"],
    languageOptions: { globals: { URL: "readonly", console: "readonly", process: "readonly" } },
  },
);

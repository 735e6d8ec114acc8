"""The pages for a browser: the chat page, and the API documentation."""
